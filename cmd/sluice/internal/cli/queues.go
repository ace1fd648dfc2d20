package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) jobsStatsCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "stats [QUEUE]", Short: "Count the jobs of every queue, or of one",
		Example: "  sluice jobs stats\n  sluice jobs stats orders --json",
	}, cobra.MaximumNArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		if len(args) == 1 {
			stats, err := api.Queue(args[0]).Stats(ctx)
			return a.queues(err, stats, stats)
		}
		queues, err := api.Queues(ctx)
		return a.queues(err, map[string]any{"queues": queues}, queues...)
	})
}

func (a *app) queues(err error, doc any, queues ...client.QueueStats) error {
	if err != nil {
		return err
	}
	return a.print(doc, func(out io.Writer) error {
		t := a.table("QUEUE", "SCHEDULED", "DUE", "DISPATCHING", "AWAITING ACK", "DEAD", "OUTBOX", "OLDEST DUE", "")
		for _, q := range queues {
			outbox, oldest := "?", "-"
			if q.Outbox != nil {
				outbox = strconv.FormatInt(*q.Outbox, 10)
			}
			if q.Due > 0 {
				oldest = human.Duration(q.OldestDue) + " ago"
			}
			paused := table.Cell{}
			if q.Paused {
				paused = table.Cell{Text: "paused", Colour: table.Yellow}
			}
			dead := count(q.Dead)
			if q.Dead > 0 {
				dead.Colour = table.Red
			}
			t.Row(table.Text(q.Name), count(q.Scheduled), count(q.Due), count(q.Dispatching), count(q.AwaitingAck),
				dead,
				table.Cell{Text: outbox, Right: true}, table.Cell{Text: oldest, Right: true}, paused)
		}
		return t.Write(out)
	})
}

func count(n int64) table.Cell { return table.Cell{Text: strconv.FormatInt(n, 10), Right: true} }

func (a *app) jobsPauseCommand() *cobra.Command {
	var until instant
	c := a.command(&cobra.Command{
		Use: "pause QUEUE [flags]", Short: "Stop sending a queue's jobs; they are still taken in",
		Example: "  sluice jobs pause orders --until 2h",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		stats, err := api.Queue(args[0]).Pause(ctx, until.Time)
		return a.queues(err, stats, stats)
	})
	c.Flags().Var(&until, "until", "go on by itself at this `instant`, or after this duration")
	return c
}

func (a *app) jobsResumeCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "resume QUEUE", Short: "End a pause", Example: "  sluice jobs resume orders",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		stats, err := api.Queue(args[0]).Resume(ctx)
		return a.queues(err, stats, stats)
	})
}

func (a *app) jobsRedriveCommand() *cobra.Command {
	var limit int
	c := a.command(&cobra.Command{
		Use: "redrive QUEUE [ID…] [flags]", Short: "Send dead jobs back to scheduled, due now, with attempt 0",
		Example: "  sluice jobs redrive orders --limit 100     # the oldest\n  sluice jobs redrive orders order-42 order-43",
	}, cobra.MinimumNArgs(1), nil)
	c.Flags().IntVar(&limit, "limit", 0, "how many of the oldest at most, up to 10000 (default 1000)")
	c.Flags().Lookup("limit").DefValue = ""
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 && limit != 0 {
			return usageError{errors.New("give ids or --limit, not both")}
		}
		api, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		moved, err := api.Queue(args[0]).Redrive(cmd.Context(), client.RedriveOptions{IDs: args[1:], Limit: limit})
		if err != nil {
			return err
		}
		return a.print(map[string]any{"moved": moved}, func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%d jobs are scheduled again\n", moved)
			return err
		})
	}
	return c
}
