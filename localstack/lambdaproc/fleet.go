package lambdaproc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/localstack/subprocess"
)

// Function configures the processes of a function.
type Function struct {
	Name string
	// Binary is the path of the program.
	Binary string
	// RuntimeAPI is the value of AWS_LAMBDA_RUNTIME_API.
	RuntimeAPI string
	// Processes is the number of processes. Default 1.
	Processes int
	// Concurrency is the number of concurrent invocations per process (AWS_LAMBDA_MAX_CONCURRENCY).
	// Default 1.
	Concurrency int
	// Env lists additional variables, "NAME=value". From the environment of this process, the
	// functions inherit only PATH, HOME and TMPDIR.
	Env []string
	// Log receives the output of the processes.
	Log io.Writer
}

// Fleet keeps the processes of a function running. It restarts a process that ends, after a backoff
// that doubles from 10 ms to 2 s.
type Fleet struct {
	fn     Function
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	procs map[int]*exec.Cmd
}

// Start starts the processes.
func Start(fn Function) (*Fleet, error) {
	fn.Processes, fn.Concurrency = max(fn.Processes, 1), max(fn.Concurrency, 1)
	if _, err := os.Stat(fn.Binary); err != nil {
		return nil, fmt.Errorf("error starting function %s: %w", fn.Name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fleet{fn: fn, cancel: cancel, procs: make(map[int]*exec.Cmd)}
	for i := range fn.Processes {
		f.wait.Go(func() { f.keep(ctx, i) })
	}
	return f, nil
}

const (
	maxBackoff = 2 * time.Second
	stopLimit  = 5 * time.Second
)

// keep runs a process and restarts it each time it ends, until ctx ends.
func (f *Fleet) keep(ctx context.Context, slot int) {
	backoff := 10 * time.Millisecond
	for ctx.Err() == nil {
		started := time.Now()
		err := f.run(ctx, slot)
		if ctx.Err() != nil {
			return
		}
		_, _ = fmt.Fprintf(f.fn.Log, "function %s ended (%v) and is started again\n", f.fn.Name, err)
		if time.Since(started) > 10*time.Second {
			backoff = 10 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// run starts a process and waits for its end. When ctx ends, run sends SIGTERM to the process, and
// SIGKILL if it still runs after stopLimit.
func (f *Fleet) run(ctx context.Context, slot int) error {
	cmd := exec.CommandContext(ctx, f.fn.Binary) //nolint:gosec // a binary that this program built
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		"AWS_LAMBDA_RUNTIME_API=" + f.fn.RuntimeAPI, "AWS_LAMBDA_FUNCTION_NAME=" + f.fn.Name,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256",
		"AWS_LAMBDA_MAX_CONCURRENCY=" + strconv.Itoa(f.fn.Concurrency),
	}, f.fn.Env...)
	cmd.Stdout, cmd.Stderr = f.fn.Log, f.fn.Log
	cmd.SysProcAttr = subprocess.Attr()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("error starting %s: %w", f.fn.Name, err)
	}
	f.mu.Lock()
	f.procs[slot] = cmd
	f.mu.Unlock()
	return cmd.Wait()
}

// Kill kills every process of the function, like a crash, and returns the number of killed
// processes. The Fleet restarts them.
func (f *Fleet) Kill() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	killed := 0
	for _, cmd := range f.procs {
		if cmd.Process.Kill() == nil {
			killed++
		}
	}
	return killed
}

// Stop terminates the processes and waits for their end.
func (f *Fleet) Stop() {
	f.cancel()
	f.wait.Wait()
}
