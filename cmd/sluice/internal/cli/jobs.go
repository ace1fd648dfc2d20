package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) jobsCommand() *cobra.Command {
	return a.parent("jobs", "Push delayed jobs, and manage queues",
		a.jobsPushCommand(), a.jobsGetCommand(), a.jobsListCommand(), a.jobsRescheduleCommand(), a.jobsCancelCommand(),
		a.jobsAckCommand(), a.jobsNackCommand(), a.jobsRedriveCommand(), a.jobsStatsCommand(), a.jobsPauseCommand(),
		a.jobsResumeCommand())
}

func (a *app) jobsGetCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "get QUEUE ID", Short: "Show a job", Example: "  sluice jobs get orders order-42",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		j, err := api.Queue(args[0]).Get(ctx, args[1])
		if err != nil {
			return err
		}
		return a.print(j, func(out io.Writer) error { return a.writeJob(out, j) })
	})
}

func (a *app) writeJob(out io.Writer, j client.JobInfo) error {
	t := a.table()
	row := func(name, value string) {
		if value != "" {
			t.Row(table.Cell{Text: name, Colour: table.Dim}, table.Text(value))
		}
	}
	timeRow := func(name string, at time.Time) {
		if !at.IsZero() {
			row(name, human.Instant(at, time.Now()))
		}
	}

	row("id", j.ID)
	row("queue", j.Queue)
	t.Row(table.Cell{Text: "state", Colour: table.Dim}, stateCell(j.State))
	row("attempt", fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts))
	timeRow("due", j.RunAt)
	timeRow("dispatched", j.DispatchedAt)
	timeRow("expires", j.ExpiresAt)
	row("last error", j.LastError)
	row("group", j.Group)
	for _, name := range slices.Sorted(maps.Keys(j.Headers)) {
		row("header", name+"="+j.Headers[name])
	}
	row("payload", string(j.Payload))
	return t.Write(out)
}

func stateCell(s client.JobState) table.Cell {
	c := table.Cell{Text: string(s)}
	switch s {
	case client.JobDead:
		c.Colour = table.Red
	case client.JobSucceeded, client.JobDispatched:
		c.Colour = table.Green
	case client.JobCanceled, client.JobExpired:
		c.Colour = table.Dim
	default:
	}
	return c
}

func (a *app) jobsListCommand() *cobra.Command {
	var o client.ListJobsOptions
	var state string
	var all bool
	c := a.command(&cobra.Command{
		Use: "list QUEUE [flags]", Short: "List the jobs of a queue, one page at a time",
		Example: "  sluice jobs list orders --state dead\n  sluice jobs list orders --all --json | jq -r .jobs[].id",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		o.State = client.JobState(state)
		read := api.Queue(args[0]).ListPage
		if all {
			read = readAllPages(api.Queue(args[0]))
		}
		page, err := read(ctx, o)
		if err != nil {
			return err
		}
		return a.print(page, func(out io.Writer) error { return a.writeJobs(out, page) })
	})
	f := c.Flags()
	f.StringVar(&state, "state", "",
		"only jobs that are scheduled, dispatching, dispatched, awaiting_ack, succeeded, canceled, expired or dead")
	f.IntVar(&o.Limit, "limit", 50, "jobs in one page: 1 to 200")
	f.StringVar(&o.Cursor, "cursor", "", "cursor printed with the previous page")
	f.BoolVar(&all, "all", false, "list every page")
	c.MarkFlagsMutuallyExclusive("all", "limit")
	c.MarkFlagsMutuallyExclusive("all", "cursor")
	return c
}

// readAllPages returns a function with the signature of ListPage that reads every page and returns
// them as one.
func readAllPages(q *client.Queue) func(context.Context, client.ListJobsOptions) (client.JobPage, error) {
	return func(ctx context.Context, o client.ListJobsOptions) (client.JobPage, error) {
		page := client.JobPage{Jobs: []client.JobInfo{}}
		for j, err := range q.List(ctx, o.State) {
			if err != nil {
				return page, err
			}
			page.Jobs = append(page.Jobs, j)
		}
		return page, nil
	}
}

func (a *app) writeJobs(out io.Writer, page client.JobPage) error {
	if len(page.Jobs) == 0 {
		a.note("no jobs")
		return nil
	}

	now := time.Now()
	t := a.table("ID", "STATE", "ATTEMPT", "DUE", "LAST ERROR")
	for _, j := range page.Jobs {
		attempt := fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts)
		t.Row(table.Text(j.ID), stateCell(j.State), right(attempt), table.Text(human.Instant(j.RunAt, now)),
			table.Text(truncate(j.LastError)))
	}
	if err := t.Write(out); err != nil {
		return err
	}
	if page.NextCursor != "" {
		a.note("next page: --cursor %s", page.NextCursor)
	}
	return nil
}
