package cli

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

func (a *app) jobsRescheduleCommand() *cobra.Command {
	var delay duration
	var at instant
	var payload string
	c := a.command(&cobra.Command{
		Use: "reschedule QUEUE ID [flags]", Short: "Change the time or the payload of a scheduled job",
		Example: "  sluice jobs reschedule orders order-42 --delay 2d\n" +
			"  sluice jobs reschedule orders order-42 --payload '{\"order\": 43}'",
	}, cobra.ExactArgs(2), nil)
	f := c.Flags()
	f.Var(&delay, "delay", "due after this time from now")
	f.Var(&at, "run-at", "due at this time")
	f.StringVar(&payload, "payload", "", "new payload as `JSON`; - reads standard input")
	c.MarkFlagsMutuallyExclusive("delay", "run-at")
	c.MarkFlagsOneRequired("delay", "run-at", "payload")

	c.RunE = func(cmd *cobra.Command, args []string) error {
		change := client.JobChange{RunAt: at.Time}
		if f.Changed("delay") {
			change.Delay = new(time.Duration(delay))
		}
		if f.Changed("payload") {
			raw, err := a.payload(payload)
			if err != nil {
				return err
			}
			change.Payload = raw
		}

		api, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		j, err := api.Queue(args[0]).Reschedule(cmd.Context(), args[1], change)
		if err != nil {
			return err
		}
		return a.printLine(j, "%s is due %s", j.ID, human.Instant(j.RunAt, time.Now()))
	}
	return c
}

func (a *app) jobsCancelCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "cancel QUEUE ID", Short: "Cancel a scheduled job", Example: "  sluice jobs cancel orders order-42",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		return a.printStatus(api.Queue(args[0]).Cancel(ctx, args[1]))
	})
}

func (a *app) printStatus(s client.JobStatus, err error) error {
	if err != nil {
		return err
	}
	due := ""
	if s.State == client.JobScheduled && !s.RunAt.IsZero() {
		due = ", due " + human.Instant(s.RunAt, time.Now())
	}
	return a.printLine(s, "%s is %s%s", s.ID, s.State, due)
}

func (a *app) jobsAckCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "ack QUEUE ID ATTEMPT", Short: "Acknowledge an attempt that succeeded",
		Example: "  sluice jobs ack orders order-42 1",
	}, cobra.ExactArgs(3), func(ctx context.Context, api *client.Client, args []string) error {
		n, err := parseAttempt(args[2])
		if err != nil {
			return err
		}
		return a.printStatus(api.Queue(args[0]).Ack(ctx, args[1], n))
	})
}

func parseAttempt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, usageError{errors.New(
			"the attempt must be a number, 1 or greater; it is in the message attribute sluice-attempt")}
	}
	return n, nil
}

func (a *app) jobsNackCommand() *cobra.Command {
	var o client.NackOptions
	var delay duration
	c := a.command(&cobra.Command{
		Use:     "nack QUEUE ID ATTEMPT [flags]",
		Short:   "Reject an attempt that failed",
		Long:    "Reject an attempt that failed. The job is scheduled again, or is dead after its last attempt.",
		Example: "  sluice jobs nack orders order-42 1 --error 'no stock' --delay 10m",
	}, cobra.ExactArgs(3), nil)
	c.Flags().StringVar(&o.Error, "error", "", "reason of the failure; jobs get and jobs list show it")
	c.Flags().Var(&delay, "delay", "time until the next attempt (default: the job's backoff)")
	c.Flags().Lookup("delay").DefValue = ""

	c.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := parseAttempt(args[2])
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("delay") {
			o.Delay = new(time.Duration(delay))
		}
		api, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		return a.printStatus(api.Queue(args[0]).Nack(cmd.Context(), args[1], n, o))
	}
	return c
}
