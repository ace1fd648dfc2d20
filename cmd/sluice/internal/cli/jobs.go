package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) jobsCommand() *cobra.Command {
	return a.parent("jobs", "Push delayed jobs, and look after queues",
		a.jobsPushCommand(), a.jobsGetCommand(), a.jobsListCommand(), a.jobsRescheduleCommand(), a.jobsCancelCommand(),
		a.jobsAckCommand(), a.jobsNackCommand(),
		a.jobsRedriveCommand(), a.jobsStatsCommand(), a.jobsPauseCommand(), a.jobsResumeCommand())
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
	now := time.Now()
	t := a.table()
	row := func(name, value string) {
		if value != "" {
			t.Row(table.Cell{Text: name, Colour: table.Dim}, table.Text(value))
		}
	}
	row("id", j.ID)
	row("queue", j.Queue)
	t.Row(table.Cell{Text: "state", Colour: table.Dim}, stateCell(j.State))
	row("attempt", fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts))
	row("due", human.Instant(j.RunAt, now))
	if !j.DispatchedAt.IsZero() {
		row("dispatched", human.Instant(j.DispatchedAt, now))
	}
	if !j.ExpiresAt.IsZero() {
		row("expires", human.Instant(j.ExpiresAt, now))
	}
	row("last error", j.LastError)
	row("group", j.Group)
	for name, value := range j.Headers {
		row("header", name+"="+value)
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
	var state, cursor string
	var limit int
	var all bool
	c := a.command(&cobra.Command{
		Use: "list QUEUE [flags]", Short: "List a queue's jobs, a page at a time",
		Example: "  sluice jobs list orders --state dead\n  sluice jobs list orders --all --json | jq -r .jobs[].id",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		q, page := api.Queue(args[0]), client.JobPage{Jobs: []client.JobInfo{}}
		if all {
			for j, err := range q.List(ctx, client.JobState(state)) {
				if err != nil {
					return err
				}
				page.Jobs = append(page.Jobs, j)
			}
		} else {
			o := client.ListJobsOptions{State: client.JobState(state), Limit: limit, Cursor: cursor}
			var err error
			if page, err = q.ListPage(ctx, o); err != nil {
				return err
			}
		}
		return a.print(page, func(out io.Writer) error { return a.writeJobs(out, page) })
	})
	f := c.Flags()
	f.StringVar(&state, "state", "",
		"only those that are scheduled, dispatching, dispatched, awaiting_ack, succeeded, canceled, expired or dead")
	f.IntVar(&limit, "limit", 50, "jobs of one page: 1 to 200")
	f.StringVar(&cursor, "cursor", "", "where to go on, as the page before said")
	f.BoolVar(&all, "all", false, "every page")
	c.MarkFlagsMutuallyExclusive("all", "limit")
	c.MarkFlagsMutuallyExclusive("all", "cursor")
	return c
}

// maxColumn keeps a table readable; --json and jobs get show everything.
const maxColumn = 60

func cut(s string) string {
	runes := []rune(s)
	if len(runes) <= maxColumn {
		return s
	}
	return string(runes[:maxColumn-1]) + "…"
}

func (a *app) writeJobs(out io.Writer, page client.JobPage) error {
	if len(page.Jobs) == 0 {
		a.note("no jobs")
		return nil
	}
	now := time.Now()
	t := a.table("ID", "STATE", "ATTEMPT", "DUE", "LAST ERROR")
	for _, j := range page.Jobs {
		t.Row(table.Text(j.ID), stateCell(j.State),
			table.Cell{Text: fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts), Right: true},
			table.Text(human.Instant(j.RunAt, now)), table.Text(cut(j.LastError)))
	}
	if err := t.Write(out); err != nil {
		return err
	}
	if page.NextCursor != "" {
		a.note("more: --cursor %s", page.NextCursor)
	}
	return nil
}

func (a *app) jobsRescheduleCommand() *cobra.Command {
	var delay duration
	var at instant
	var payload string
	c := a.command(&cobra.Command{
		Use: "reschedule QUEUE ID [flags]", Short: "Move a scheduled job to another time, or give it another payload",
		Example: "  sluice jobs reschedule orders order-42 --delay 2d\n  sluice jobs reschedule orders order-42 --payload '{\"order\": 43}'",
	}, cobra.ExactArgs(2), nil)
	f := c.Flags()
	f.Var(&delay, "delay", "due this long from now")
	f.Var(&at, "run-at", "due at this `instant`")
	f.StringVar(&payload, "payload", "", "new payload as `JSON`; - reads standard input")
	c.MarkFlagsMutuallyExclusive("delay", "run-at")
	c.MarkFlagsOneRequired("delay", "run-at", "payload")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		change := client.JobChange{RunAt: at.Time}
		if f.Changed("delay") {
			d := time.Duration(delay)
			change.Delay = &d
		}
		if f.Changed("payload") {
			var err error
			if change.Payload, err = a.payload(payload); err != nil {
				return err
			}
		}
		api, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		j, err := api.Queue(args[0]).Reschedule(cmd.Context(), args[1], change)
		if err != nil {
			return err
		}
		return a.print(j, func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%s is due %s\n", j.ID, human.Instant(j.RunAt, time.Now()))
			return err
		})
	}
	return c
}

func (a *app) jobsCancelCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "cancel QUEUE ID", Short: "Take a scheduled job out", Example: "  sluice jobs cancel orders order-42",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		return a.settled(api.Queue(args[0]).Cancel(ctx, args[1]))
	})
}

func (a *app) settled(s client.JobStatus, err error) error {
	if err != nil {
		return err
	}
	return a.print(s, func(out io.Writer) error {
		line := s.ID + " is " + string(s.State)
		if s.State == client.JobScheduled && !s.RunAt.IsZero() {
			line += ", due " + human.Instant(s.RunAt, time.Now())
		}
		_, err := fmt.Fprintln(out, line)
		return err
	})
}

func (a *app) jobsAckCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "ack QUEUE ID ATTEMPT", Short: "Say that an attempt succeeded",
		Example: "  sluice jobs ack orders order-42 1",
	}, cobra.ExactArgs(3), func(ctx context.Context, api *client.Client, args []string) error {
		n, err := attempt(args[2])
		if err != nil {
			return err
		}
		return a.settled(api.Queue(args[0]).Ack(ctx, args[1], n))
	})
}

func attempt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, usageError{errors.New("the attempt must be a number from 1: the message's sluice-attempt")}
	}
	return n, nil
}

func (a *app) jobsNackCommand() *cobra.Command {
	var why string
	var delay duration
	c := a.command(&cobra.Command{
		Use:     "nack QUEUE ID ATTEMPT [flags]",
		Short:   "Say that an attempt failed: the next one is scheduled, or the job is dead",
		Example: "  sluice jobs nack orders order-42 1 --error 'no stock' --delay 10m",
	}, cobra.ExactArgs(3), nil)
	c.Flags().StringVar(&why, "error", "", "why, for jobs get and list")
	c.Flags().Var(&delay, "delay", "when the next attempt is due (default: after the job's backoff)")
	c.Flags().Lookup("delay").DefValue = ""
	c.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := attempt(args[2])
		if err != nil {
			return err
		}
		api, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		o := client.NackOptions{Error: why}
		if cmd.Flags().Changed("delay") {
			o.Delay = new(time.Duration(delay))
		}
		return a.settled(api.Queue(args[0]).Nack(cmd.Context(), args[1], n, o))
	}
	return c
}
