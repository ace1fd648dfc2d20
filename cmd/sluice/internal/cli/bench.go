package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/load"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) benchCommand() *cobra.Command {
	return a.parent("bench", "Measure a deployment under load", a.benchLocksCommand(), a.benchJobsCommand(),
		a.benchLimitsCommand())
}

const benchLong = `

The latencies include the network between this machine and the API. The load ends after --duration
or --count, whichever comes first, or with Ctrl-C. With --rate, a latency is measured from the
scheduled start of the call, so that it includes stalls of the API.`

// workload is one kind of load.
type workload struct {
	// calls describes the calls in the output.
	calls string
	// prepare returns the function that makes call number n.
	prepare func(api *client.Client, args []string) func(ctx context.Context, n int) error
}

func (a *app) bench(c *cobra.Command, args cobra.PositionalArgs, w workload) *cobra.Command {
	var plan load.Plan
	span := duration(10 * time.Second)
	c.Long += benchLong
	c = a.command(c, args, func(ctx context.Context, api *client.Client, given []string) error {
		plan.Duration = time.Duration(span)
		if err := checkPlan(plan); err != nil {
			return err
		}
		plan.Progress = func(done int, took time.Duration) { a.note("%4.0fs  %d %s", took.Seconds(), done, w.calls) }

		call := w.prepare(api, given)
		if err := call(ctx, -1); err != nil { // detects an invalid name or endpoint before the load
			return err
		}
		r := load.Run(ctx, plan, call, failure)
		return a.print(r, func(out io.Writer) error { return a.writeLoad(out, w.calls, r) })
	})

	f := c.Flags()
	f.Float64Var(&plan.Rate, "rate", 0, "calls to start per second (default: as many as --concurrency allows)")
	f.IntVar(&plan.Concurrency, "concurrency", 8, "concurrent calls: 1 to 1000")
	f.Var(&span, "duration", "how long to measure")
	f.IntVar(&plan.Count, "count", 0, "number of calls after which to end (default: no limit)")
	f.Lookup("rate").DefValue, f.Lookup("count").DefValue = "0", "0" // pflag does not print a zero default
	return c
}

func checkPlan(p load.Plan) error {
	if p.Concurrency < 1 || p.Concurrency > 1000 {
		return usageError{errors.New("--concurrency must be 1 to 1000")}
	}
	if p.Duration <= 0 {
		return usageError{errors.New("--duration must be positive")}
	}
	if p.Rate < 0 || p.Count < 0 {
		return usageError{errors.New("--rate and --count must not be negative")}
	}
	return nil
}

// failure returns the name under which an error is counted: the code of a [client.Error], or the
// text of any other error.
func failure(err error) string {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return string(e.Code)
	}
	return err.Error()
}

// runName returns a random prefix for the names that one run of a benchmark uses.
func runName() string { return "bench-" + strings.ToLower(rand.Text()[:8]) }

func (a *app) benchLocksCommand() *cobra.Command {
	prepare := func(api *client.Client, _ []string) func(context.Context, int) error {
		run := runName()
		return func(ctx context.Context, n int) error {
			l, err := api.TryLock(ctx, fmt.Sprintf("%s-%d", run, n+1), client.LockOptions{TTL: 30 * time.Second})
			if err != nil {
				return err
			}
			return l.Unlock(ctx)
		}
	}
	return a.bench(&cobra.Command{
		Use: "locks [flags]", Short: "Acquire and release locks",
		Long:    "Acquire and release locks with names that nothing else uses. A call is two requests.",
		Example: "  sluice bench locks --concurrency 16 --duration 30s",
	}, cobra.NoArgs, workload{"lock + release", prepare})
}

func (a *app) benchJobsCommand() *cobra.Command {
	delay := duration(time.Hour)
	prepare := func(api *client.Client, args []string) func(context.Context, int) error {
		queue := api.Queue(args[0])
		return func(ctx context.Context, _ int) error {
			payload := map[string]string{"from": "sluice bench"}
			receipt, err := queue.Push(ctx, client.Job{Payload: payload, Delay: time.Duration(delay)})
			if err != nil {
				return err
			}
			_, err = queue.Cancel(ctx, receipt.ID)
			return err
		}
	}
	c := a.bench(&cobra.Command{
		Use: "jobs QUEUE [flags]", Short: "Push and cancel jobs",
		Long: "Push jobs that are due after --delay, and cancel them. A call is two requests. Jobs reach a\n" +
			"consumer only if --delay is short.",
		Example: "  sluice bench jobs orders --rate 200 --duration 1m --json",
	}, cobra.ExactArgs(1), workload{"push + cancel", prepare})
	c.Flags().Var(&delay, "delay", "delay of the pushed jobs")
	return c
}

func (a *app) benchLimitsCommand() *cobra.Command {
	var keys int
	prepare := func(api *client.Client, args []string) func(context.Context, int) error {
		run := runName()
		return func(ctx context.Context, n int) error {
			key := fmt.Sprintf("%s-%d", run, (n+1)%max(keys, 1))
			_, err := api.Check(ctx, client.Check{Policy: args[0], Key: key, Cost: 1})
			return err
		}
	}
	c := a.bench(&cobra.Command{
		Use: "limits POLICY [flags]", Short: "Check a policy for many keys",
		Long:    "Check a policy for keys that nothing else uses. The keys are charged. A denial is not an error.",
		Example: "  sluice bench limits login --keys 1000 --concurrency 32",
	}, cobra.ExactArgs(1), workload{"checks", prepare})
	c.Flags().IntVar(&keys, "keys", 100, "number of keys")
	return c
}

func (a *app) writeLoad(out io.Writer, calls string, r load.Result) error {
	if _, err := fmt.Fprintf(out, "%d calls of %s in %.1f s: %.0f per second\n",
		r.Calls, calls, r.Seconds, r.PerSec); err != nil {
		return err
	}

	t := a.table("P50", "P90", "P99", "MAX")
	ms := func(v float64) table.Cell { return right(fmt.Sprintf("%.2f ms", v)) }
	t.Row(ms(r.P50), ms(r.P90), ms(r.P99), ms(r.Max))
	if err := t.Write(out); err != nil {
		return err
	}

	failed := table.Paint(a.colour(out), table.Red, "failed")
	for _, name := range slices.Sorted(maps.Keys(r.Errors)) {
		if _, err := fmt.Fprintf(out, "%s %s: %d\n", failed, name, r.Errors[name]); err != nil {
			return err
		}
	}
	return nil
}
