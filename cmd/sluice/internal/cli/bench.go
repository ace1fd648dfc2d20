package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/load"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) benchCommand() *cobra.Command {
	return a.parent("bench", "Put load on a deployment, and measure it", a.benchLocksCommand(), a.benchJobsCommand(),
		a.benchLimitsCommand())
}

const benchLong = `

The load goes through the real API, from this machine: what is measured includes the network between. It ends after --duration or --count, whichever
comes first, or with Ctrl-C. With --rate a latency counts from the instant at which its call was to begin, so that an API that stalls shows it.`

// benchFlags are those of every load.
func benchFlags(c *cobra.Command, plan *load.Plan, span *duration) {
	*span = duration(10 * time.Second)
	f := c.Flags()
	f.Float64Var(&plan.Rate, "rate", 0, "calls to begin in a second (default: as many as --concurrency allows)")
	f.IntVar(&plan.Concurrency, "concurrency", 8, "calls under way at once, at most: 1 to 1000")
	f.Var(span, "duration", "how long")
	f.IntVar(&plan.Count, "count", 0, "how many calls at most (default: no bound)")
	f.Lookup("rate").DefValue, f.Lookup("count").DefValue = "0", "0"
}

// benchCommand is one kind of load: prepare returns the call to repeat.
func (a *app) bench(c *cobra.Command, args cobra.PositionalArgs, what string,
	prepare func(api *client.Client, args []string) func(context.Context, int) error) *cobra.Command {
	var plan load.Plan
	var span duration
	c.Long += benchLong
	c = a.command(c, args, func(ctx context.Context, api *client.Client, given []string) error {
		if plan.Concurrency < 1 || plan.Concurrency > 1000 || plan.Rate < 0 || plan.Count < 0 || span <= 0 {
			return usageError{errors.New("--concurrency must be 1 to 1000, --duration positive, and --rate and --count not negative")}
		}
		plan.Duration = time.Duration(span)
		plan.Progress = func(done int, took time.Duration) { a.note("%4.0fs  %d %s", took.Seconds(), done, what) }
		call := prepare(api, given)
		if err := call(ctx, -1); err != nil { // one call first: a wrong name or endpoint is told at once
			return err
		}
		r := load.Run(ctx, plan, call, failure)
		return a.print(r, func(out io.Writer) error { return a.writeLoad(out, what, r) })
	})
	benchFlags(c, &plan, &span)
	return c
}

// failure is what an error is counted as: its code.
func failure(err error) string {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return string(e.Code)
	}
	return err.Error()
}

func (a *app) benchLocksCommand() *cobra.Command {
	return a.bench(&cobra.Command{
		Use: "locks [flags]", Short: "Take and release locks, each of its own",
		Long:    "Take a lock and release it: two requests a call, of names that nobody else uses.",
		Example: "  sluice bench locks --concurrency 16 --duration 30s",
	}, cobra.NoArgs, "lock + release", func(api *client.Client, _ []string) func(context.Context, int) error {
		run := strings.ToLower(rand.Text()[:8])
		return func(ctx context.Context, n int) error {
			l, err := api.TryLock(ctx, fmt.Sprintf("bench-%s-%d", run, n+1), client.LockOptions{TTL: 30 * time.Second})
			if err != nil {
				return err
			}
			return l.Unlock(ctx)
		}
	})
}

func (a *app) benchJobsCommand() *cobra.Command {
	var delay duration
	c := a.bench(&cobra.Command{
		Use: "jobs QUEUE [flags]", Short: "Push jobs and cancel them",
		Long:    "Push a job that is due after --delay and cancel it: two requests a call. Nothing reaches the queue's consumers unless --delay is short.",
		Example: "  sluice bench jobs orders --rate 200 --duration 1m --json",
	}, cobra.ExactArgs(1), "push + cancel", func(api *client.Client, args []string) func(context.Context, int) error {
		queue := api.Queue(args[0])
		return func(ctx context.Context, _ int) error {
			receipt, err := queue.Push(ctx, client.Job{Payload: map[string]string{"from": "sluice bench"},
				Delay: time.Duration(delay)})
			if err != nil {
				return err
			}
			_, err = queue.Cancel(ctx, receipt.ID)
			return err
		}
	})
	delay = duration(time.Hour)
	c.Flags().Var(&delay, "delay", "when each job is due, if it were not canceled")
	return c
}

func (a *app) benchLimitsCommand() *cobra.Command {
	var keys int
	c := a.bench(&cobra.Command{
		Use: "limits POLICY [flags]", Short: "Check a policy for many keys",
		Long:    "Check a policy, charging it, for --keys keys that nobody else uses. A denial is an answer like any other.",
		Example: "  sluice bench limits login --keys 1000 --concurrency 32",
	}, cobra.ExactArgs(1), "checks", func(api *client.Client, args []string) func(context.Context, int) error {
		run := strings.ToLower(rand.Text()[:8])
		return func(ctx context.Context, n int) error {
			_, err := api.Check(ctx, client.Check{Policy: args[0],
				Key: fmt.Sprintf("bench-%s-%d", run, (n+1)%max(keys, 1)), Cost: 1})
			return err
		}
	})
	c.Flags().IntVar(&keys, "keys", 100, "how many keys")
	return c
}

func (a *app) writeLoad(out io.Writer, what string, r load.Result) error {
	if _, err := fmt.Fprintf(out, "%d calls of %s in %.1f s: %.0f a second\n", r.Calls, what, r.Seconds,
		r.PerSec); err != nil {
		return err
	}
	t := a.table("P50", "P90", "P99", "MAX")
	ms := func(v float64) table.Cell { return table.Cell{Text: fmt.Sprintf("%.2f ms", v), Right: true} }
	t.Row(ms(r.P50), ms(r.P90), ms(r.P99), ms(r.Max))
	if err := t.Write(out); err != nil {
		return err
	}
	names := make([]string, 0, len(r.Errors))
	for name := range r.Errors {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, err := fmt.Fprintf(out, "%s %s: %d\n", table.Paint(a.colour(out), table.Red, "failed"), name,
			r.Errors[name]); err != nil {
			return err
		}
	}
	return nil
}
