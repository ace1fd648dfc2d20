package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

// push holds the flags of the command "jobs push".
type push struct {
	app *app

	job                                    client.Job
	delay, ackTimeout, backoff, backoffMax duration
	runAt, expiresAt                       instant
	headers                                headers
	lines                                  bool
}

const pushLong = `Push a job. Sluice sends it to the SQS queue of QUEUE when it is due.

PAYLOAD is JSON. If it is - or missing, it is read from standard input. With --lines, each line of
standard input is the payload of one job; the jobs are pushed in batches.

With --id the push is idempotent: if a job with this ID already exists, nothing is enqueued.`

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
		if !p.lines {
			return p.one(ctx, q, append(args[1:], "-")[0])
		}
		if len(args) > 1 || p.job.ID != "" {
			return usageError{errors.New("--lines cannot be combined with PAYLOAD or --id: " +
				"each line is the payload of a job with its own ID")}
		}
		return p.many(ctx, q)
	})
	p.register(c)
	return c
}

func (p *push) register(c *cobra.Command) {
	f := c.Flags()
	f.Var(&p.delay, "delay", "due after this time from now, up to 3650d")
	f.Var(&p.runAt, "run-at", "due at this time; a time in the past means now")
	f.StringVar(&p.job.ID, "id", "", "ID of the job (default: random)")
	f.IntVar(&p.job.MaxAttempts, "max-attempts", 0,
		"1 to 100; with more than 1, the consumer acknowledges the job (default: 1)")
	f.Var(&p.ackTimeout, "ack-timeout", "time limit of an attempt; then the next attempt is scheduled")
	f.Var(&p.backoff, "backoff", "maximum wait after the first attempt; it doubles with each attempt, with full jitter")
	f.Var(&p.backoffMax, "backoff-max", "maximum wait between attempts")
	f.Var(&p.expiresAt, "expires-at", "drop the job if it was not sent before this time")
	f.StringVar(&p.job.Group, "group", "", "message group, for a FIFO queue")
	f.Var(&p.headers, "header", "header, sent as a message attribute; may be repeated")
	f.BoolVar(&p.job.Durable, "durable", false, "write the job to DynamoDB before the push returns")
	f.BoolVar(&p.lines, "lines", false, "push a job for each line of standard input")
	for _, name := range []string{"delay", "ack-timeout", "backoff", "backoff-max"} {
		f.Lookup(name).DefValue = ""
	}
	f.Lookup("max-attempts").DefValue = "0" // pflag does not print a zero default
	c.MarkFlagsMutuallyExclusive("delay", "run-at")
}

// complete fills the job from the flags.
func (p *push) complete() {
	p.job.Delay, p.job.AckTimeout = time.Duration(p.delay), time.Duration(p.ackTimeout)
	p.job.RunAt, p.job.ExpiresAt = p.runAt.Time, p.expiresAt.Time
	p.job.Headers = p.headers
	if p.backoff > 0 || p.backoffMax > 0 {
		p.job.Backoff = &client.Backoff{Initial: time.Duration(p.backoff), Max: time.Duration(p.backoffMax)}
	}
}

// payload returns text, or standard input if text is "-". It refuses a payload that is not one JSON
// value.
func (a *app) payload(text string) (json.RawMessage, error) {
	raw := []byte(text)
	if text == "-" {
		var err error
		if raw, err = a.readAll(); err != nil {
			return nil, err
		}
	}
	if !json.Valid(raw) {
		return nil, usageError{errors.New(`the payload is not JSON; a JSON string needs double quotes: '"text"'`)}
	}
	return json.RawMessage(raw), nil
}

// one pushes one job.
func (p *push) one(ctx context.Context, q *client.Queue, text string) error {
	payload, err := p.app.payload(text)
	if err != nil {
		return err
	}
	p.job.Payload = payload

	receipt, err := q.Push(ctx, p.job)
	if err != nil {
		if p.job.ID == "" && errors.Is(err, client.ErrUnreachable) {
			p.app.note("sluice: the job may have been enqueued; to try again, push it with --id %s", receipt.ID)
		}
		return err
	}
	p.warn(receipt)
	due := human.Instant(receipt.RunAt, time.Now())
	return p.app.printLine(receipt, "%s is %s, due %s", receipt.ID, receipt.State, due)
}

func (p *push) warn(r client.Receipt) {
	switch {
	case r.PayloadDiffers:
		p.app.note("sluice: a job with the ID %s and a different payload already exists; nothing was enqueued", r.ID)
	case r.Duplicate:
		p.app.note("sluice: a job with the ID %s already exists; nothing was enqueued", r.ID)
	}
	if r.Degraded != "" {
		p.app.note("sluice: Redis is unavailable; the job was stored by the fallback %s", r.Degraded)
	}
}

// many pushes a job for each line of standard input that is not blank.
func (p *push) many(ctx context.Context, q *client.Queue) error {
	input, err := p.app.readAll()
	if err != nil {
		return err
	}
	jobs, err := p.jobs(input)
	if err != nil {
		return err
	}
	results, err := q.PushBatch(ctx, jobs)
	return errors.Join(p.report(results), err)
}

func (p *push) jobs(input []byte) ([]client.Job, error) {
	var jobs []client.Job
	number := 0
	for line := range bytes.Lines(input) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return nil, usageError{fmt.Errorf("line %d is not JSON; nothing was pushed", number)}
		}
		job := p.job
		job.Payload = json.RawMessage(line)
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// pushReport is the JSON output of --lines.
type pushReport struct {
	Pushed  int              `json:"pushed"`
	Results []client.Receipt `json:"results"`
}

// report prints the results, and returns an error if a job failed.
func (p *push) report(results []client.PushResult) error {
	report := pushReport{Results: make([]client.Receipt, 0, len(results))}
	var failed []error
	for _, r := range results {
		if r.Err != nil {
			failed = append(failed, r.Err)
			continue
		}
		report.Pushed++
		report.Results = append(report.Results, r.Receipt)
	}

	if err := p.app.printLine(report, "%d of %d jobs were enqueued", report.Pushed, len(results)); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d jobs failed, the first one: %w", len(failed), failed[0])
	}
	return nil
}
