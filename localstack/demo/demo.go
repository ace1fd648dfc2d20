// Package demo plays a short story on a running local stack, and checks every line that it tells:
// Run returns an error as soon as something was not observed.
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

// Config is the stack that the story is played on.
type Config struct {
	APIURL   string
	QueueURL string // of the queue "orders"
	SQS      *sqs.Client
	// StopRedis and StartRedis take Redis away and bring it back with its data.
	StopRedis, StartRedis func(context.Context) error
	// Tofu runs OpenTofu or Terraform, which ToolName says, with the provider; nil when neither is
	// here.
	Tofu     *tofu.Workspace
	ToolName string
	// Sluice runs the command line with an input, for when there is no Tofu.
	Sluice func(ctx context.Context, input string, args ...string) (string, error)
	Out    io.Writer
	// Color writes ANSI colours.
	Color bool
}

// Run plays all chapters; it takes about 25 seconds.
func Run(ctx context.Context, cfg Config) error {
	s := &story{Config: cfg, started: time.Now(), http: &http.Client{Timeout: 30 * time.Second}}
	s.inbox = newInbox(cfg.SQS, cfg.QueueURL)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.inbox.receive(ctx)

	for i, chapter := range []struct {
		title string
		play  func(context.Context, *story) error
	}{
		{"Two workers want one lock", playLock},
		{"An unpaid order is to be cancelled in three seconds", playJobs},
		{"Twenty logins against five a minute", playLimits},
		{"A limit is a pull request", playPolicies},
		{"Redis is taken away", playOutage},
	} {
		s.title(i+1, chapter.title)
		if err := chapter.play(ctx, s); err != nil {
			s.fail(err)
			return fmt.Errorf("chapter %d, %q: %w", i+1, chapter.title, err)
		}
	}
	s.end()
	return nil
}

// story tells what happens, with the time since the start before each line.
type story struct {
	Config
	started time.Time
	http    *http.Client
	inbox   *inbox
	checks  int
}

func (s *story) paint(code, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *story) title(n int, text string) {
	_, _ = fmt.Fprintf(s.Out, "\n%s\n", s.paint("1", fmt.Sprintf("%d. %s", n, text)))
}

func (s *story) line(mark, format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, "%s %s %s\n", s.paint("2", fmt.Sprintf("%6.2fs", time.Since(s.started).Seconds())), mark,
		fmt.Sprintf(format, args...))
}

func (s *story) tell(format string, args ...any) { s.line("·", format, args...) }

func (s *story) fail(err error) { s.line(s.paint("31", "✗"), "%v", err) }

// check tells a line that was observed, or returns an error that says what was not.
func (s *story) check(ok bool, format string, args ...any) error {
	if !ok {
		return fmt.Errorf("not observed: "+format, args...)
	}
	s.checks++
	s.line(s.paint("32", "✓"), format, args...)
	return nil
}

func (s *story) end() {
	_, _ = fmt.Fprintf(s.Out, `
%s in %.1f s. To go on, start the stack with `+"`make up`"+` and try, in another terminal:

  curl -s %[3]s/v1/locks/report/acquire -H 'Content-Type: application/json' -d '{"ttl_ms": 30000, "owner": "me"}'
  curl -s %[3]s/v1/queues/orders/jobs   -H 'Content-Type: application/json' -d '{"payload": {"order": 42}, "delay_ms": 5000}'
  curl -s %[3]s/v1/health
`, s.paint("1;32", fmt.Sprintf("All %d observations made", s.checks)), time.Since(s.started).Seconds(), "http://127.0.0.1:4000")
}
