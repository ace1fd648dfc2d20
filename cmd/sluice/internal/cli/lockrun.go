package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/group"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

// Exit codes of lock run beside its command's own.
const (
	exitNoLock    = 75 // EX_TEMPFAIL of sysexits.h: try again later
	exitLost      = 76
	exitNotRun    = 126 // as shells have it
	exitNoCommand = 127
)

const lockRunLong = `Wait for a lock, run a command under it, and release it.

The command runs in a process group of its own, with SLUICE_LOCK_NAME, SLUICE_LOCK_TOKEN and SLUICE_FENCE in its environment. SLUICE_FENCE is a
number that rises from holder to holder: hand it to what the command writes to, which refuses a lower one. Signals are passed on to the group.

The lock is renewed each third of --ttl. When it is lost, because it was released by force or cannot be renewed, the whole group gets
SIGTERM, and SIGKILL after --grace: before the lease ends, or at once when somebody else may hold the lock already. What the command leaves
running in its group when it ends is ended likewise before the lock is released; what it has moved to a session of its own is not.

Exit codes: the command's own (128 + n after signal n), and
   75  the lock could not be had: it is held, or the API cannot be reached; the command was not run
   76  the lock was lost before the command had ended
  126  the command cannot be run     127  there is no such command`

// lockRun are the flags of lock run.
type lockRun struct {
	app *app

	name, owner, consistency string
	ttl, wait, grace         duration
	waitSet, shared          bool
	capacity                 int
	command                  []string
}

func (a *app) lockRunCommand() *cobra.Command {
	r := &lockRun{app: a, ttl: duration(30 * time.Second)}
	c := a.command(&cobra.Command{
		Use: "run NAME [flags] -- COMMAND [ARG…]", Short: "Run a command under a lock", Long: lockRunLong,
		Example: "  sluice lock run nightly-report -- ./report.sh\n" +
			"  sluice lock run deploy --wait 0 -- make deploy               # not now when somebody else deploys\n" +
			"  sluice lock run db-pool --capacity 5 --wait 10m -- ./import  # at most five at once",
	}, cobra.MinimumNArgs(1), nil)
	f := c.Flags()
	f.Var(&r.ttl, "ttl", "how long the lease lasts without a renewal: 1s to 1h")
	f.Var(&r.wait, "wait", "how long to wait for the lock; 0 is not at all (default: as long as it takes)")
	f.Lookup("wait").DefValue = ""
	f.Var(&r.grace, "grace", "time between SIGTERM and SIGKILL (default: 5s, at most a quarter of --ttl)")
	f.Lookup("grace").DefValue = ""
	f.StringVar(&r.owner, "owner", "", "public label that lock status shows (default: user@host)")
	f.StringVar(&r.consistency, "consistency", "", "where the lock is kept: redis (default), quorum or strong")
	f.BoolVar(&r.shared, "shared", false, "share the lock with others who do")
	f.IntVar(&r.capacity, "capacity", 0, "take one of `N` permits of a semaphore instead of a lock")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		if dash != 1 || len(args) < 2 {
			return usageError{errors.New("give one name, and the command after --: sluice lock run NAME -- COMMAND")}
		}
		r.name, r.command, r.waitSet = args[0], args[1:], f.Changed("wait")
		if err := r.check(f.Changed("grace"), f.Changed("capacity")); err != nil {
			return err
		}
		api, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		return r.run(cmd.Context(), api)
	}
	return c
}

// check validates the flags, and fills in the grace.
func (r *lockRun) check(graceSet, capacitySet bool) error {
	ttl := time.Duration(r.ttl)
	if ttl < time.Second || ttl > time.Hour {
		return usageError{errors.New("--ttl must be 1s to 1h")}
	}
	if !graceSet {
		r.grace = duration(min(5*time.Second, ttl/4))
	}
	if time.Duration(r.grace)+r.killMargin() > ttl/2 {
		return usageError{fmt.Errorf("--grace must be less than half of --ttl, %s, so that the command ends before the lease does", human.Duration(ttl/2))}
	}
	if capacitySet && (r.capacity < 1 || r.shared || r.consistency != "") {
		return usageError{errors.New("--capacity must be at least 1, and excludes --shared and --consistency")}
	}
	if r.owner == "" {
		r.owner = here()
	}
	return nil
}

// killMargin is how long before the end of the lease everything must have been killed.
func (r *lockRun) killMargin() time.Duration {
	return min(time.Duration(r.ttl)/20, 500*time.Millisecond)
}

// here is user@host.
func here() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

func (r *lockRun) run(ctx context.Context, api *client.Client) error {
	cmd, err := r.prepare()
	if err != nil {
		return err
	}
	lock, err := r.acquire(ctx, api)
	if err != nil {
		r.close(ctx, api)
		return err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, group.Forwarded()...)
	defer signal.Stop(signals)
	held := make(chan os.Signal, 1)
	signal.Notify(held, group.Unstoppable()...) // a holder that is stopped cannot renew: it is not
	defer signal.Stop(held)
	if ctx.Err() != nil { // a signal that came before there was anybody to pass it on to
		return errors.Join(codedError{exitInterrupted, errors.New("interrupted; the command was not run")},
			lock.Unlock(ctx))
	}
	cmd.Env = append(r.app.Environ(),
		"SLUICE_LOCK_NAME="+r.name, "SLUICE_LOCK_TOKEN="+lock.Token(),
		"SLUICE_FENCE="+strconv.FormatInt(lock.Fence(), 10))
	g, err := group.Start(cmd)
	if err != nil {
		return errors.Join(codedError{exitNotRun, fmt.Errorf("cannot run %s: %w", r.command[0], err)}, lock.Unlock(ctx))
	}
	r.supervise(lock, g, signals) //nolint:contextcheck // the lock has the context that counts
	return r.finish(ctx, lock, g)
}

// prepare finds the command before the lock is taken.
func (r *lockRun) prepare() (*exec.Cmd, error) {
	path, err := exec.LookPath(r.command[0])
	if errors.Is(err, fs.ErrPermission) {
		return nil, codedError{exitNotRun, fmt.Errorf("cannot run %s: %w", r.command[0], fs.ErrPermission)}
	}
	if err != nil {
		return nil, codedError{exitNoCommand, fmt.Errorf("there is no command %q", r.command[0])}
	}
	cmd := &exec.Cmd{Path: path, Args: r.command}
	streams := []any{r.app.Stdin, r.app.Stdout, r.app.Stderr}
	for i, into := range []func(*os.File){func(f *os.File) {
		cmd.Stdin = f
	}, func(f *os.File) { cmd.Stdout = f }, func(f *os.File) { cmd.Stderr = f }} {
		if f, ok := streams[i].(*os.File); ok {
			into(f)
		}
	}
	return cmd, nil
}

// acquire takes the lock, and says so when that takes a while.
func (r *lockRun) acquire(ctx context.Context, api *client.Client) (*client.Lock, error) {
	o := client.LockOptions{
		TTL: time.Duration(r.ttl), Wait: time.Duration(r.wait), Owner: r.owner,
		Consistency: client.Consistency(r.consistency),
		Margin:      time.Duration(r.grace) + r.killMargin(),
		Metadata:    map[string]any{"command": r.command[0], "pid": os.Getpid()},
	}
	if r.shared {
		o.Mode = client.LockShared
	}
	try, wait := api.TryLock, api.Lock
	if r.capacity > 0 {
		s := api.Semaphore(r.name, r.capacity)
		try = func(ctx context.Context, _ string, o client.LockOptions) (*client.Lock, error) {
			return s.TryAcquire(ctx, o)
		}
		wait = func(ctx context.Context, _ string, o client.LockOptions) (*client.Lock, error) {
			return s.Acquire(ctx, o)
		}
	}
	// The signals that end the wait are the command's own once it runs.
	taking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, stop)()
	lock, err := try(taking, r.name, o)
	waits := !r.waitSet || r.wait > 0
	if e, held := errors.AsType[*client.Error](err); held && waits &&
		(errors.Is(err, client.ErrLockHeld) || errors.Is(err, client.ErrStoreUnavailable)) {
		r.app.note("sluice: waiting: %s", e)
		lock, err = wait(taking, r.name, o)
	}
	switch {
	case err == nil:
		return lock, nil
	case ctx.Err() != nil:
		return nil,
			codedError{exitInterrupted, errors.New("interrupted while waiting for the lock; the command was not run")}
	case errors.Is(err, client.ErrLockHeld), errors.Is(err, client.ErrStoreUnavailable),
		errors.Is(err, client.ErrUnreachable):
		return nil, codedError{exitNoLock, err}
	}
	return nil, err
}

// close gives back what an interrupted wait may still be granted.
func (r *lockRun) close(ctx context.Context, api *client.Client) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	again, stop := signal.NotifyContext(ending, os.Interrupt)
	defer stop()
	if err := api.Close(again); err != nil {
		r.app.note("sluice: the lock may still be granted to this command, and is then free again after its TTL, %s",
			human.Duration(time.Duration(r.ttl)))
	}
}

// closeLimit is a little longer than the API lets a request wait.
const closeLimit = 25 * time.Second
