// Package demo runs a scenario on a running local stack and checks each result that it prints.
// [Run] stops at the first failed check and returns an error.
package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/localstack/tofu"
)

// Config describes the stack that the scenario runs on.
type Config struct {
	APIURL   string
	QueueURL string // of the queue "orders"
	SQS      *sqs.Client
	// StopRedis kills Redis; StartRedis starts it again with its data.
	StopRedis, StartRedis func(context.Context) error
	// Tofu runs OpenTofu or Terraform with the provider. It is nil if neither is installed.
	Tofu *tofu.Workspace
	// ToolName is the command that Tofu runs: "tofu" or "terraform".
	ToolName string
	// Sluice runs the sluice command line with input as its standard input. The scenario uses it if
	// Tofu is nil.
	Sluice func(ctx context.Context, input string, args ...string) (string, error)
	Out    io.Writer
	// Color enables ANSI colours.
	Color bool
}

// Run runs all parts of the scenario, which takes about 25 seconds.
func Run(ctx context.Context, cfg Config) error {
	s := &scenario{Config: cfg, started: time.Now(), http: &http.Client{Timeout: 30 * time.Second}}
	s.inbox = newInbox(cfg.SQS, cfg.QueueURL)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.inbox.receive(ctx)

	for i, part := range []struct {
		title string
		show  func(context.Context, *scenario) error
	}{
		{"Two workers want one lock", showLock},
		{"An unpaid order is cancelled after three seconds", showJobs},
		{"Twenty logins, five allowed per minute", showLimits},
		{"A rate limit is declared in code", showPolicies},
		{"Redis fails", showOutage},
	} {
		s.title(i+1, part.title)
		if err := part.show(ctx, s); err != nil {
			s.fail(err)
			return fmt.Errorf("part %d, %q: %w", i+1, part.title, err)
		}
	}
	s.end()
	return nil
}

// scenario prints each step with the time since the start.
type scenario struct {
	Config
	started time.Time
	http    *http.Client
	inbox   *inbox
	checks  int
}

func (s *scenario) paint(code, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *scenario) title(n int, text string) {
	_, _ = fmt.Fprintf(s.Out, "\n%s\n", s.paint("1", fmt.Sprintf("%d. %s", n, text)))
}

func (s *scenario) line(mark, format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, "%s %s %s\n", s.paint("2", fmt.Sprintf("%6.2fs", time.Since(s.started).Seconds())), mark,
		fmt.Sprintf(format, args...))
}

func (s *scenario) note(format string, args ...any) { s.line("·", format, args...) }

func (s *scenario) fail(err error) { s.line(s.paint("31", "✗"), "%v", err) }

// check prints the line if ok is true. Otherwise it returns an error that contains the line.
func (s *scenario) check(ok bool, format string, args ...any) error {
	if !ok {
		return fmt.Errorf("the check failed: "+format, args...)
	}
	s.checks++
	s.line(s.paint("32", "✓"), format, args...)
	return nil
}

func (s *scenario) end() {
	all := s.paint("1;32", fmt.Sprintf("All %d checks passed", s.checks))
	_, _ = fmt.Fprintf(s.Out, "\n%s in %.1f s. ", all, time.Since(s.started).Seconds())
	_, _ = fmt.Fprint(s.Out, "To continue, start the stack with `make up` and try, in another terminal:\n\n")
	const post = "  curl -s http://127.0.0.1:4000/v1/%s -H 'Content-Type: application/json' -d '%s'\n"
	_, _ = fmt.Fprintf(s.Out, post, "locks/report/acquire", `{"ttl_ms": 30000, "owner": "me"}`)
	_, _ = fmt.Fprintf(s.Out, post, "queues/orders/jobs", `{"payload": {"order": 42}, "delay_ms": 5000}`)
	_, _ = fmt.Fprintln(s.Out, "  curl -s http://127.0.0.1:4000/v1/health")
}
