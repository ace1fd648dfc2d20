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

// Exit codes of "lock run", in addition to the exit code of the command that it runs.
const (
	exitNoLock    = 75 // EX_TEMPFAIL of sysexits.h: try again later
	exitLost      = 76
	exitNotRun    = 126 // as in a shell
	exitNoCommand = 127 // as in a shell
)

const lockRunLong = `Wait for a lock, run a command under it, and release it.

The command runs in its own process group, with SLUICE_LOCK_NAME, SLUICE_LOCK_TOKEN and
SLUICE_FENCE in its environment. SLUICE_FENCE is a number that is higher for each later holder.
Pass it to the resource that the command writes to: the resource must refuse lower numbers. Signals
are passed on to the group.

The lease is renewed three times per --ttl. If it cannot be renewed, the group receives SIGTERM and,
after --grace, SIGKILL. Both are sent before the lease ends. If another holder may already have the
lock, for example after a forced release, the group receives SIGKILL immediately.

When the command ends, all other processes of its group are ended before the lock is released.
Processes that have left the group, for example with setsid, are not ended.

Exit codes: the exit code of the command (128 + n after signal n), or
   75  the lock was not acquired: it is held, or the API is unreachable; the command was not run
   76  the lock was lost before the command ended
  126  the command cannot be run
  127  the command does not exist`

// lockRun holds the flags of the command "lock run".
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
			"  sluice lock run deploy --wait 0 -- make deploy               # fail if the lock is held\n" +
			"  sluice lock run db-pool --capacity 5 --wait 10m -- ./import  # up to five concurrently",
	}, cobra.MinimumNArgs(1), nil)
	r.register(c)

	c.RunE = func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		if dash != 1 || len(args) < 2 {
			return usageError{errors.New("give one name, and the command after --: sluice lock run NAME -- COMMAND")}
		}
		f := cmd.Flags()
		r.name, r.command, r.waitSet = args[0], args[1:], f.Changed("wait")
		if err := r.complete(f.Changed("grace"), f.Changed("capacity")); err != nil {
			return err
		}
		api, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		return r.run(cmd.Context(), api)
	}
	return c
}

func (r *lockRun) register(c *cobra.Command) {
	f := c.Flags()
	f.Var(&r.ttl, "ttl", "duration of the lease without a renewal: 1s to 1h")
	f.Var(&r.wait, "wait", "maximum wait for the lock; 0 does not wait (default: no limit)")
	f.Lookup("wait").DefValue = ""
	f.Var(&r.grace, "grace", "time between SIGTERM and SIGKILL (default: 5s, or a quarter of --ttl if that is less)")
	f.Lookup("grace").DefValue = ""
	f.StringVar(&r.owner, "owner", "", "holder's label in the output of \"sluice lock status\" (default: user@host)")
	f.StringVar(&r.consistency, "consistency", "", "store of the lock: redis (default), quorum or strong")
	f.BoolVar(&r.shared, "shared", false, "share the lock with other holders that use --shared")
	f.IntVar(&r.capacity, "capacity", 0, "acquire one of `N` permits of a semaphore instead of a lock")
}

// complete fills in defaults, and refuses invalid flags.
func (r *lockRun) complete(graceSet, capacitySet bool) error {
	ttl := time.Duration(r.ttl)
	if ttl < time.Second || ttl > time.Hour {
		return usageError{errors.New("--ttl must be 1s to 1h")}
	}
	if !graceSet {
		r.grace = duration(min(5*time.Second, ttl/4))
	}
	if time.Duration(r.grace)+r.killMargin() > ttl/2 {
		return usageError{fmt.Errorf("--grace must be less than half of --ttl, %s, so that the command ends before "+
			"the lease does", human.Duration(ttl/2))}
	}
	if capacitySet && (r.capacity < 1 || r.shared || r.consistency != "") {
		return usageError{errors.New("--capacity must be at least 1, and excludes --shared and --consistency")}
	}
	if r.owner == "" {
		r.owner = userAtHost()
	}
	return nil
}

// killMargin returns the time between SIGKILL and the end of the lease.
func (r *lockRun) killMargin() time.Duration {
	return min(time.Duration(r.ttl)/20, 500*time.Millisecond)
}

func userAtHost() string {
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
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, group.Stopping()...) // a suspended sluice (Ctrl-Z) cannot renew the lease
	defer signal.Stop(ignored)
	if ctx.Err() != nil { // a signal arrived before the command started
		interrupted := codedError{exitInterrupted, errors.New("interrupted; the command was not run")}
		return errors.Join(interrupted, lock.Unlock(ctx))
	}

	cmd.Env = append(r.app.Environ(),
		"SLUICE_LOCK_NAME="+r.name, "SLUICE_LOCK_TOKEN="+lock.Token(),
		"SLUICE_FENCE="+strconv.FormatInt(lock.Fence(), 10))
	g, err := group.Start(cmd)
	if err != nil {
		return errors.Join(codedError{exitNotRun, fmt.Errorf("cannot run %s: %w", r.command[0], err)}, lock.Unlock(ctx))
	}
	r.supervise(lock, g, signals) //nolint:contextcheck // the context of the lock applies
	return r.finish(ctx, lock, g)
}

// prepare finds the command, before the lock is acquired.
func (r *lockRun) prepare() (*exec.Cmd, error) {
	path, err := exec.LookPath(r.command[0])
	if errors.Is(err, fs.ErrPermission) {
		return nil, codedError{exitNotRun, fmt.Errorf("cannot run %s: %w", r.command[0], fs.ErrPermission)}
	}
	if err != nil {
		return nil, codedError{exitNoCommand, fmt.Errorf("the command %q does not exist", r.command[0])}
	}

	// group.Start accepts only files. With a pipe, cmd.Wait would block until every process that
	// inherited the pipe has ended.
	cmd := &exec.Cmd{Path: path, Args: r.command}
	if f, ok := r.app.Stdin.(*os.File); ok {
		cmd.Stdin = f
	}
	if f, ok := r.app.Stdout.(*os.File); ok {
		cmd.Stdout = f
	}
	if f, ok := r.app.Stderr.(*os.File); ok {
		cmd.Stderr = f
	}
	return cmd, nil
}
