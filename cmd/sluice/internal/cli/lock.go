package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) lockCommand() *cobra.Command {
	return a.parent("lock", "Run a command under a lock, and manage locks", a.lockRunCommand(),
		a.lockStatusCommand(), a.lockReleaseCommand())
}

// lockKind holds the flags that select a lock or a semaphore.
type lockKind struct {
	consistency string
	semaphore   bool
}

func (k *lockKind) register(f *pflag.FlagSet) {
	f.StringVar(&k.consistency, "consistency", "", "store of the lock: redis (default), quorum or strong")
	f.BoolVar(&k.semaphore, "semaphore", false, "NAME is a semaphore")
}

// handle returns the lock or semaphore with the given name.
func (k *lockKind) handle(api *client.Client, name string) (lockHandle, error) {
	at := client.Consistency(k.consistency)
	if !k.semaphore {
		return lockByName{api, name, at}, nil
	}
	if at != "" && at != client.ConsistencyRedis {
		return nil, usageError{errors.New("a semaphore is always in redis: omit --consistency")}
	}
	return api.Semaphore(name, 1), nil
}

// lockHandle has the calls that locks and semaphores have in common. *client.Semaphore implements
// it.
type lockHandle interface {
	Inspect(ctx context.Context) (client.LockState, error)
	ReleaseToken(ctx context.Context, token string) error
	ForceRelease(ctx context.Context) (int, error)
}

// lockByName implements lockHandle for a lock.
type lockByName struct {
	api  *client.Client
	name string
	at   client.Consistency
}

// Inspect implements lockHandle.
func (l lockByName) Inspect(ctx context.Context) (client.LockState, error) {
	return l.api.Inspect(ctx, l.name, l.at)
}

// ReleaseToken implements lockHandle.
func (l lockByName) ReleaseToken(ctx context.Context, token string) error {
	return l.api.ReleaseToken(ctx, l.name, token, l.at)
}

// ForceRelease implements lockHandle.
func (l lockByName) ForceRelease(ctx context.Context) (int, error) {
	return l.api.ForceRelease(ctx, l.name, l.at)
}

func (a *app) lockStatusCommand() *cobra.Command {
	var kind lockKind
	c := a.command(&cobra.Command{
		Use: "status NAME [flags]", Short: "Show the holders of a lock",
		Example: "  sluice lock status nightly-report\n  sluice lock status db-pool --semaphore --json",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		lock, err := kind.handle(api, args[0])
		if err != nil {
			return err
		}
		state, err := lock.Inspect(ctx)
		if err != nil {
			return err
		}
		return a.print(state, func(out io.Writer) error { return a.writeLock(out, state) })
	})
	kind.register(c.Flags())
	return c
}

func (a *app) writeLock(out io.Writer, s client.LockState) error {
	line := s.Name + " is free"
	if s.Held {
		line = fmt.Sprintf("%s is held (%s)", s.Name, s.Mode)
	}
	if s.Waiters > 0 {
		line += fmt.Sprintf(", %d waiting", s.Waiters)
	}
	if _, err := fmt.Fprintln(out, line); err != nil || len(s.Holders) == 0 {
		return err
	}

	now := time.Now()
	t := a.table("OWNER", "FENCE", "HELD SINCE", "LEASE ENDS", "METADATA")
	for _, h := range s.Holders {
		t.Row(table.Text(first(h.Owner, "-")), number(h.Fence), table.Text(human.Instant(h.AcquiredAt, now)),
			table.Text(human.Instant(h.ExpiresAt, now)), table.Text(first(string(h.Metadata), "-")))
	}
	return t.Write(out)
}

const lockReleaseLong = `Release a lock by its token. ` + "`sluice lock run`" + ` passes the token to
its command in SLUICE_LOCK_TOKEN.

--force releases the lock without the token. The holders notice the release at their next renewal.
The next holder gets a higher fence.`

func (a *app) lockReleaseCommand() *cobra.Command {
	var kind lockKind
	var token string
	var force bool
	c := a.command(&cobra.Command{
		Use:   "release NAME (--token TOKEN | --force) [flags]",
		Short: "Release a lock by its token, or by force", Long: lockReleaseLong,
		Example: "  sluice lock release nightly-report --token \"$SLUICE_LOCK_TOKEN\"\n" +
			"  sluice lock release nightly-report --force",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		if (token == "") == !force {
			return usageError{errors.New("give either --token, or --force to release the lock of any holder")}
		}
		lock, err := kind.handle(api, args[0])
		if err != nil {
			return err
		}
		if force {
			return a.forceRelease(ctx, lock, args[0])
		}
		if err := lock.ReleaseToken(ctx, token); err != nil {
			return err
		}
		return a.printLine(map[string]any{"released": true}, "%s is released", args[0])
	})
	kind.register(c.Flags())
	c.Flags().StringVar(&token, "token", "", "token of the holder")
	c.Flags().BoolVar(&force, "force", false, "release the lock of every holder")
	return c
}

func (a *app) forceRelease(ctx context.Context, lock lockHandle, name string) error {
	n, err := lock.ForceRelease(ctx)
	if err != nil {
		return err
	}
	doc := map[string]any{"released": n}
	switch n {
	case 0:
		return a.printLine(doc, "%s was free", name)
	case 1:
		return a.printLine(doc, "%s was released by force; it had 1 holder", name)
	default:
		return a.printLine(doc, "%s was released by force; it had %d holders", name, n)
	}
}
