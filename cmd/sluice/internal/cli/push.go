package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

// push are the flags of jobs push.
type push struct {
	app *app

	job                                    client.Job
	delay, ackTimeout, backoff, backoffMax duration
	runAt, expiresAt                       instant
	lines                                  bool
}

const pushLong = `Push a job, to be sent to the queue's SQS queue when it is due.

PAYLOAD is JSON; - or nothing reads it from standard input. With --lines each line of standard input is the payload of a job of its own, and
they are pushed by the hundreds.

With --id the push can be repeated: a job whose id is known is not taken in again, and says so.`

func (a *app) jobsPushCommand() *cobra.Command {
	p := &push{app: a}
	c := a.command(&cobra.Command{
		Use: "push QUEUE [PAYLOAD] [flags]", Short: "Push a job, or many", Long: pushLong,
		Example: "  sluice jobs push orders '{\"order\": 42}' --delay 5m --id order-42\n" +
			"  sluice jobs push emails - --run-at 2026-01-02T08:00:00Z --max-attempts 5 <mail.json\n" +
			"  sluice jobs push orders --lines <orders.ndjson",
	}, cobra.RangeArgs(1, 2), func(ctx context.Context, api *client.Client, args []string) error {
		p.complete()
		q := api.Queue(args[0])
		if p.lines {
			if len(args) > 1 || p.job.ID != "" {
				return usageError{errors.New("--lines reads payloads from standard input, and gives each an id of its own")}
			}
			return p.many(ctx, q)
		}
		return p.one(ctx, q, append(args[1:], "-")[0])
	})
	f := c.Flags()
	f.Var(&p.delay, "delay", "due this long from now, up to 3650d")
	f.Var(&p.runAt, "run-at", "due at this `instant`; in the past means now")
	f.StringVar(&p.job.ID, "id", "", "the job's id (default: a random one)")
	f.IntVar(&p.job.MaxAttempts, "max-attempts", 0, "1 to 100; over 1 the consumer acks (default: 1)")
	f.Var(&p.ackTimeout, "ack-timeout", "how long an attempt may take before the next one")
	f.Var(&p.backoff, "backoff", "wait before the second attempt; it doubles with each, with full jitter")
	f.Var(&p.backoffMax, "backoff-max", "the longest wait between attempts")
	f.Var(&p.expiresAt, "expires-at", "drop the job if it was not sent by this `instant`")
	f.StringVar(&p.job.Group, "group", "", "message group, on a FIFO queue")
	f.StringToStringVar(&p.job.Headers, "header", nil, "`name=value` to send as a message attribute; may be repeated")
	f.BoolVar(&p.job.Durable, "durable", false, "write the job to DynamoDB before it is acknowledged")
	f.BoolVar(&p.lines, "lines", false, "a job for each line of standard input")
	for _, name := range []string{"delay", "ack-timeout", "backoff", "backoff-max"} {
		f.Lookup(name).DefValue = ""
	}
	f.Lookup("max-attempts").DefValue, f.Lookup("header").DefValue = "0", "" // what pflag takes for no default
	c.MarkFlagsMutuallyExclusive("delay", "run-at")
	return c
}

func (p *push) complete() {
	p.job.Delay, p.job.RunAt, p.job.ExpiresAt, p.job.AckTimeout = time.Duration(p.delay), p.runAt.Time,
		p.expiresAt.Time, time.Duration(p.ackTimeout)
	if p.backoff > 0 || p.backoffMax > 0 {
		p.job.Backoff = &client.Backoff{Initial: time.Duration(p.backoff), Max: time.Duration(p.backoffMax)}
	}
}

// payload checks that text, or standard input for "-", is one JSON value.
func (a *app) payload(text string) (json.RawMessage, error) {
	raw := []byte(text)
	if text == "-" {
		var err error
		if raw, err = a.readAll(); err != nil {
			return nil, err
		}
	}
	if !json.Valid(raw) {
		return nil, usageError{errors.New(`the payload is not JSON: quote a text twice, as '"text"'`)}
	}
	return json.RawMessage(raw), nil
}

func (p *push) one(ctx context.Context, q *client.Queue, text string) error {
	payload, err := p.app.payload(text)
	if err != nil {
		return err
	}
	p.job.Payload = payload
	receipt, err := q.Push(ctx, p.job)
	if err != nil {
		if p.job.ID == "" && errors.Is(err, client.ErrUnreachable) {
			p.app.note("sluice: it may have been taken in; push it again with --id %s", receipt.ID)
		}
		return err
	}
	p.warn(receipt)
	return p.app.print(receipt, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "%s is %s, due %s\n", receipt.ID, receipt.State,
			human.Instant(receipt.RunAt, time.Now()))
		return err
	})
}

func (p *push) warn(r client.Receipt) {
	switch {
	case r.PayloadDiffers:
		p.app.note("sluice: the id %s is known, with another payload; nothing was taken in", r.ID)
	case r.Duplicate:
		p.app.note("sluice: the id %s is known; nothing was taken in", r.ID)
	}
	if r.Degraded != "" {
		p.app.note("sluice: taken in without Redis (%s)", r.Degraded)
	}
}

// many pushes a job for each line that is not blank.
func (p *push) many(ctx context.Context, q *client.Queue) error {
	input, err := p.app.readAll()
	if err != nil {
		return err
	}
	var jobs []client.Job
	number := 0
	for line := range bytes.Lines(input) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return usageError{fmt.Errorf("line %d is not JSON; nothing was pushed", number)}
		}
		job := p.job
		job.Payload = json.RawMessage(line)
		jobs = append(jobs, job)
	}
	results, err := q.PushBatch(ctx, jobs)
	return errors.Join(p.report(results), err)
}

// pushedMany is what --json prints.
type pushedMany struct {
	Pushed  int              `json:"pushed"`
	Results []client.Receipt `json:"results"`
}

func (p *push) report(results []client.PushResult) error {
	out := pushedMany{Results: make([]client.Receipt, 0, len(results))}
	var failed error
	failures := 0
	for _, r := range results {
		if r.Err == nil {
			out.Pushed++
			out.Results = append(out.Results, r.Receipt)
			continue
		}
		if failures++; failed == nil {
			failed = r.Err
		}
	}
	if err := p.app.print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d of %d jobs were taken in\n", out.Pushed, len(results))
		return err
	}); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%d jobs were refused, the first: %w", failures, failed)
	}
	return nil
}
