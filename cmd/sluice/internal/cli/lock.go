package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) lockCommand() *cobra.Command {
	return a.parent("lock", "Run a command under a lock, and look after locks", a.lockRunCommand(),
		a.lockStatusCommand(), a.lockReleaseCommand())
}

// which names a lock or a semaphore.
type which struct {
	consistency string
	semaphore   bool
}

func (w *which) register(f *pflag.FlagSet) {
	f.StringVar(&w.consistency, "consistency", "", "where the lock is kept: redis (default), quorum or strong")
	f.BoolVar(&w.semaphore, "semaphore", false, "the name is a semaphore's")
}

func (w *which) check() error {
	if w.semaphore && w.consistency != "" && w.consistency != string(client.ConsistencyRedis) {
		return usageError{errors.New("a semaphore is always on redis: leave --consistency out")}
	}
	return nil
}

func (a *app) lockStatusCommand() *cobra.Command {
	var w which
	c := a.command(&cobra.Command{
		Use: "status NAME [flags]", Short: "Show who holds a lock",
		Example: "  sluice lock status nightly-report\n  sluice lock status db-pool --semaphore --json",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		if err := w.check(); err != nil {
			return err
		}
		inspect := func() (client.LockState, error) {
			return api.Inspect(ctx, args[0], client.Consistency(w.consistency))
		}
		if w.semaphore {
			inspect = func() (client.LockState, error) { return api.Semaphore(args[0], 1).Inspect(ctx) }
		}
		state, err := inspect()
		if err != nil {
			return err
		}
		return a.print(state, func(out io.Writer) error { return a.writeLock(out, state) })
	})
	w.register(c.Flags())
	return c
}

func (a *app) writeLock(out io.Writer, s client.LockState) error {
	free := fmt.Sprintf("%s is free", s.Name)
	if s.Held {
		free = fmt.Sprintf("%s is held (%s)", s.Name, s.Mode)
	}
	if s.Waiters > 0 {
		free += fmt.Sprintf(", %d waiting", s.Waiters)
	}
	if _, err := fmt.Fprintln(out, free); err != nil || len(s.Holders) == 0 {
		return err
	}
	now := time.Now()
	t := a.table("OWNER", "FENCE", "HELD SINCE", "LEASE ENDS", "METADATA")
	for _, h := range s.Holders {
		t.Row(table.Text(first(h.Owner, "-")), table.Cell{Text: strconv.FormatInt(h.Fence, 10), Right: true},
			table.Text(human.Instant(h.AcquiredAt, now)),
			table.Text(human.Instant(h.ExpiresAt, now)), table.Text(first(string(h.Metadata), "-")))
	}
	return t.Write(out)
}

func (a *app) lockReleaseCommand() *cobra.Command {
	var w which
	var token string
	var force bool
	c := a.command(&cobra.Command{
		Use:   "release NAME (--token TOKEN | --force) [flags]",
		Short: "Release a lock by its token, or take it from its holders by force",
		Long: "Release a lock by its token, which is SLUICE_LOCK_TOKEN under `sluice lock run`.\n\n" +
			"--force takes it from whoever holds it. They learn of it at their next renewal, and their fence is lower than the next holder's.",
		Example: "  sluice lock release nightly-report --token \"$SLUICE_LOCK_TOKEN\"\n  sluice lock release nightly-report --force",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		if (token == "") == !force {
			return usageError{errors.New("give --token, or --force to take the lock from whoever holds it")}
		}
		if err := w.check(); err != nil {
			return err
		}
		if force {
			return a.forceRelease(ctx, api, args[0], w)
		}
		release := func() error { return api.ReleaseToken(ctx, args[0], token, client.Consistency(w.consistency)) }
		if w.semaphore {
			release = func() error { return api.Semaphore(args[0], 1).ReleaseToken(ctx, token) }
		}
		if err := release(); err != nil {
			return err
		}
		return a.print(map[string]any{"released": true}, func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%s is released\n", args[0])
			return err
		})
	})
	w.register(c.Flags())
	c.Flags().StringVar(&token, "token", "", "the token that holds it")
	c.Flags().BoolVar(&force, "force", false, "take it from everybody who holds it")
	return c
}

func (a *app) forceRelease(ctx context.Context, api *client.Client, name string, w which) error {
	force := func() (int, error) { return api.ForceRelease(ctx, name, client.Consistency(w.consistency)) }
	if w.semaphore {
		force = func() (int, error) { return api.Semaphore(name, 1).ForceRelease(ctx) }
	}
	n, err := force()
	if err != nil {
		return err
	}
	return a.print(map[string]any{"released": n}, func(out io.Writer) error {
		text := fmt.Sprintf("%s was taken from %d holders\n", name, n)
		switch n {
		case 0:
			text = name + " was free\n"
		case 1:
			text = name + " was taken from its holder\n"
		}
		_, err := io.WriteString(out, text)
		return err
	})
}
