package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
)

// binaries measures the size of the functions' zips for arm64, and the time from exec until a
// function's process first polls for work on this machine.
func binaries(ctx context.Context, s *suite) error {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return fmt.Errorf("error making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var largest float64
	for _, name := range []string{"lock", "enqueue", "dispatcher", "limit"} {
		arm := filepath.Join(dir, name+"-arm64")
		if err := build(ctx, "..", "./functions/"+name, arm, "arm64"); err != nil {
			return err
		}
		size, err := zipped(arm)
		if err != nil {
			return err
		}
		largest = max(largest, size)
	}
	s.add(report.Row{ID: "P13", Work: "the largest function, zipped for arm64", Against: "a bound",
		Ours: fmt.Sprintf("%.2f MB", largest), Value: largest, Unit: "MB", AtMost: 5}, "")

	ours, bare := filepath.Join(dir, "limit"), filepath.Join(dir, "bare")
	if err := build(ctx, "..", "./functions/limit", ours, runtime.GOARCH); err != nil {
		return err
	}
	if err := build(ctx, ".", "./bare", bare, runtime.GOARCH); err != nil {
		return err
	}
	var took [2][]float64
	for range s.size(40, 12) {
		for i, binary := range []string{ours, bare} {
			d, err := firstPoll(ctx, binary)
			if err != nil {
				return err
			}
			took[i] = append(took[i], d.Seconds()*1000)
		}
	}
	a, b := measure.Quantile(took[0], 0.5), measure.Quantile(took[1], 0.5)
	s.add(report.Row{
		ID: "P13", Work: "exec → first poll for work", Against: "a bare handler", Ours: ms(a), Theirs: ms(b),
		Value: a / b, AtMost: 1.5,
		Note: s.note("A handler that does nothing, with the same AWS and Redis clients."),
	}, "")
	return nil
}

func build(ctx context.Context, root, pkg, out, arch string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", out,
		pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if runtime.GOARCH == arch {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("error building %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// zipped compresses the file at path into a zip, at the best compression level, and returns the
// size of the zip in MB.
func zipped(path string) (float64, error) {
	content, err := os.ReadFile(path) //nolint:gosec // a file that this program wrote
	if err != nil {
		return 0, fmt.Errorf("error reading a binary: %w", err)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	w, err := z.Create("bootstrap")
	if err != nil {
		return 0, fmt.Errorf("error zipping: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return 0, fmt.Errorf("error zipping: %w", err)
	}
	if err := z.Close(); err != nil {
		return 0, fmt.Errorf("error zipping: %w", err)
	}
	return float64(out.Len()) / 1e6, nil
}

// firstPoll starts a function against a fake Lambda Runtime API and returns the time until the
// function's first poll for work.
func firstPoll(ctx context.Context, binary string) (time.Duration, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on loopback does not block
	if err != nil {
		return 0, fmt.Errorf("error listening: %w", err)
	}
	asked := make(chan time.Time, 64)
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case asked <- time.Now():
			default:
			}
			<-r.Context().Done()
		})}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	cmd := exec.CommandContext(ctx, binary) //nolint:gosec // a binary that this program built
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(), "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=local",
		"AWS_SECRET_ACCESS_KEY=local",
		"SLUICE_REDIS_URL=redis://127.0.0.1:1", "SLUICE_POLICY_TABLE=policies", "SLUICE_OUTBOX_TABLE=outbox",
		`SLUICE_QUEUES={}`,
	}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("error starting a function: %w", err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	select {
	case at := <-asked:
		return at.Sub(started), nil
	case <-time.After(20 * time.Second):
		return 0, fmt.Errorf("%s did not poll for work within 20 s", filepath.Base(binary))
	}
}
