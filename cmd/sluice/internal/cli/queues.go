package cli

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) jobsStatsCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "stats [QUEUE]", Short: "Count the jobs of every queue, or of one queue",
		Example: "  sluice jobs stats\n  sluice jobs stats orders --json",
	}, cobra.MaximumNArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		if len(args) == 1 {
			stats, err := api.Queue(args[0]).Stats(ctx)
			return a.printStats(err, stats, stats)
		}
		queues, err := api.Queues(ctx)
		return a.printStats(err, map[string]any{"queues": queues}, queues...)
	})
}

func (a *app) printStats(err error, doc any, queues ...client.QueueStats) error {
	if err != nil {
		return err
	}
	return a.print(doc, func(out io.Writer) error {
		t := a.table("QUEUE", "SCHEDULED", "DUE", "DISPATCHING", "AWAITING ACK", "DEAD", "OUTBOX", "OLDEST DUE", "")
		for _, q := range queues {
			t.Row(statsRow(q)...)
		}
		return t.Write(out)
	})
}

func statsRow(q client.QueueStats) []table.Cell {
	outbox, oldest, paused := "?", "-", table.Cell{}
	if q.Outbox != nil {
		outbox = strconv.FormatInt(*q.Outbox, 10)
	}
	if q.Due > 0 {
		oldest = human.Duration(q.OldestDue) + " ago"
	}
	if q.Paused {
		paused = table.Cell{Text: "paused", Colour: table.Yellow}
	}
	dead := number(q.Dead)
	if q.Dead > 0 {
		dead.Colour = table.Red
	}
	return []table.Cell{
		table.Text(q.Name), number(q.Scheduled), number(q.Due), number(q.Dispatching), number(q.AwaitingAck), dead,
		right(outbox), right(oldest), paused,
	}
}

func (a *app) jobsPauseCommand() *cobra.Command {
	var until instant
	c := a.command(&cobra.Command{
		Use: "pause QUEUE [flags]", Short: "Pause the dispatch of a queue; it still accepts jobs",
		Example: "  sluice jobs pause orders --until 2h",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		stats, err := api.Queue(args[0]).Pause(ctx, until.Time)
		return a.printStats(err, stats, stats)
	})
	c.Flags().Var(&until, "until", "resume automatically at this time, or after this duration")
	return c
}

func (a *app) jobsResumeCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "resume QUEUE", Short: "End a pause", Example: "  sluice jobs resume orders",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		stats, err := api.Queue(args[0]).Resume(ctx)
		return a.printStats(err, stats, stats)
	})
}

func (a *app) jobsRedriveCommand() *cobra.Command {
	var o client.RedriveOptions
	c := a.command(&cobra.Command{
		Use: "redrive QUEUE [ID…] [flags]", Short: "Schedule dead jobs again, due now, with attempt 0",
		Example: "  sluice jobs redrive orders --limit 100     # the oldest\n" +
			"  sluice jobs redrive orders order-42 order-43",
	}, cobra.MinimumNArgs(1), nil)
	c.Flags().IntVar(&o.Limit, "limit", 0, "maximum number of jobs, the oldest first; up to 10000 (default 1000)")
	c.Flags().Lookup("limit").DefValue = "0" // pflag does not print a zero default

	c.RunE = func(cmd *cobra.Command, args []string) error {
		o.IDs = args[1:]
		if len(o.IDs) > 0 && o.Limit != 0 {
			return usageError{errors.New("IDs and --limit cannot be combined")}
		}
		api, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		moved, err := api.Queue(args[0]).Redrive(cmd.Context(), o)
		if err != nil {
			return err
		}
		return a.printLine(map[string]any{"moved": moved}, "scheduled again: %d", moved)
	}
	return c
}
