package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/report"
)

// write writes benchmarks.md into a folder, and the headlines into the README next to the folder.
func (s *suite) write(ctx context.Context, folder string) error {
	d := report.Document{
		Machine: machine(), Versions: versions(ctx), Commit: s.commit, Date: time.Now().UTC().Format(time.DateOnly),
		Rounds: fmt.Sprintf("%d of %s", s.plan.Rounds, s.plan.Slice), Rows: s.rows, Notes: s.notes, Plots: s.drawn,
	}
	if err := writeDocument(filepath.Join(folder, "benchmarks.md"), d.Markdown()); err != nil {
		return err
	}

	readme := filepath.Join(folder, "..", "README.md")
	text, err := os.ReadFile(readme) //nolint:gosec // the project's own README
	if err != nil {
		return fmt.Errorf("read the README: %w", err)
	}
	updated, err := report.ReplaceHeadlines(string(text), s.rows)
	if err != nil {
		return err
	}
	return writeDocument(readme, updated)
}

func writeDocument(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a public document
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if line, _, found := strings.Cut(after(string(text), "model name"), "\n"); found {
			model = strings.Trim(line, "\t :")
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// versions lists the versions of Go, Redis and the Redis client, and of the peers' libraries.
func versions(ctx context.Context) string {
	out := []string{runtime.Version()}
	if redis := strings.Fields(output(ctx, "redis-server", "--version")); len(redis) > 2 {
		out = append(out, "Redis "+strings.TrimPrefix(redis[2], "v="))
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return strings.Join(out, ", ")
	}
	for _, d := range info.Deps {
		for _, peer := range []string{"go-redis/v9", "redislock", "redsync", "rueidislock", "redis_rate",
			"throttled/v2", "ulule/limiter", "asynq"} {
			if strings.Contains(d.Path, peer) && !strings.Contains(d.Path, "extra") {
				out = append(out, strings.TrimPrefix(d.Path, "github.com/")+" "+d.Version)
			}
		}
	}
	return strings.Join(out, ", ")
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
