// The local stack: the whole system on this machine, without Docker and without an AWS account.
//
//	go run ./localstack up
//	go run ./localstack demo
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/localstack/stack"
)

const usage = `Usage: go run ./localstack <command> [flags]

Commands:
  up     start everything and keep it running until Ctrl-C
  demo   start everything, play a short story on it, check every line, and stop

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "localstack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("localstack", flag.ContinueOnError)
	flags.SetOutput(errOut)
	var o options
	o.register(flags)
	flags.Usage = func() {
		_, _ = io.WriteString(errOut, usage)
		flags.PrintDefaults()
	}
	if len(args) == 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	if err := flags.Parse(args[1:]); err != nil {
		return flag.ErrHelp
	}
	switch args[0] {
	case "up":
		return up(ctx, o, out, errOut)
	case "demo":
		return play(ctx, o.withoutTofu, out, errOut)
	default:
		flags.Usage()
		return flag.ErrHelp
	}
}

type options struct {
	api, aws, redis, queues, ready, log string
	processes, lockNodes                int
	tick                                time.Duration
	iam, withoutTofu                    bool
	consumers                           consumers
}

func (o *options) register(f *flag.FlagSet) {
	f.StringVar(&o.api, "api-addr", "127.0.0.1:4000", "where the API listens")
	f.StringVar(&o.aws, "aws-addr", "127.0.0.1:4566", "where SQS, DynamoDB and the Lambda Runtime API listen")
	f.StringVar(&o.redis, "redis", "", "`URL` of a Redis to use (default: a redis-server of its own, else miniredis)")
	f.StringVar(&o.queues, "queues", "orders,emails",
		"the queues, separated by commas; a name that ends in .fifo is a FIFO queue")
	f.StringVar(&o.ready, "ready-file", "", "`path` of a JSON file to write once all is up")
	f.StringVar(&o.log, "log", "",
		"`path` of a file for what the functions print, or - for the terminal (default: nowhere)")
	f.IntVar(&o.processes, "functions", 4, "processes of each function")
	f.IntVar(&o.lockNodes, "lock-nodes", 3, "further Redis servers for quorum locks; 0 for none")
	f.DurationVar(&o.tick, "tick", time.Minute, "how often the dispatcher is invoked")
	f.Var(&o.consumers, "consumer",
		"`queue=folder` of a Lambda function that gets the queue's messages, such as orders=./localstack/sampleconsumer; may be repeated")
	f.BoolVar(&o.withoutTofu, "without-tofu", false,
		"of demo: tell of policies with the command line, as it does where neither tofu nor terraform is")
	f.BoolVar(&o.iam, "require-iam", false, "answer 403 to requests without a signature")
}

func up(ctx context.Context, o options, out, errOut io.Writer) error {
	log, closeLog, err := openLog(o.log, errOut)
	if err != nil {
		return err
	}
	defer closeLog()
	cfg := stack.Config{
		APIAddr: o.api, AWSAddr: o.aws, RedisURL: o.redis, Queues: splitNames(o.queues), Processes: o.processes,
		LockNodes: o.lockNodes, Tick: o.tick, Log: log,
		Consumers: o.consumers,
		Progress:  func(what string) { _, _ = fmt.Fprintln(errOut, what) },
	}
	cfg.Gateway.RequireIAM = o.iam
	started := time.Now()
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped while starting
		}
		return err
	}
	banner(out, s, time.Since(started))
	if o.ready != "" {
		if err := writeReady(o.ready, s); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	<-ctx.Done()
	_, _ = fmt.Fprintln(out, "stopping…")
	return s.Close()
}

// consumers is a flag that may be repeated.
type consumers map[string]string

// String implements flag.Value.
func (c *consumers) String() string { return "" }

// Set implements flag.Value.
func (c *consumers) Set(text string) error {
	queue, folder, found := strings.Cut(text, "=")
	if !found || queue == "" || folder == "" {
		return errors.New("must be queue=folder, such as orders=./localstack/sampleconsumer")
	}
	if *c == nil {
		*c = make(map[string]string)
	}
	(*c)[queue] = folder
	return nil
}

func splitNames(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func openLog(path string, terminal io.Writer) (io.Writer, func(), error) {
	switch path {
	case "":
		return io.Discard, func() {}, nil
	case "-":
		return terminal, func() {}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the user names the file
	if err != nil {
		return nil, nil, fmt.Errorf("error opening the log: %w", err)
	}
	return f, func() { _ = f.Close() }, nil
}

func banner(out io.Writer, s *stack.Stack, took time.Duration) {
	redis := map[string]string{
		"given":        s.RedisURL,
		"redis-server": s.RedisURL + " (a redis-server of its own; its data ends with it)",
		"miniredis":    s.RedisURL + " (embedded miniredis: there is no redis-server on the PATH)",
	}[s.RedisKind]
	_, _ = fmt.Fprintf(out, `Sluice is up, after %.1f s.

  API     %s
  AWS     %s (SQS, DynamoDB; any credentials)
  Redis   %s
`, took.Seconds(), s.APIURL, s.AWSEndpoint, redis)
	for name, url := range s.QueueURLs {
		_, _ = fmt.Fprintf(out, "  queue   %s → %s\n", name, url)
	}
	_, _ = fmt.Fprintf(out, `
Try, in another terminal:

  curl -s %[1]s/v1/locks/report/acquire -H 'Content-Type: application/json' -d '{"ttl_ms": 30000, "owner": "me"}'
  curl -s %[1]s/v1/queues/orders/jobs   -H 'Content-Type: application/json' -d '{"payload": {"order": 42}, "delay_ms": 5000}'
  curl -s %[1]s/v1/health

Ctrl-C stops it.
`, s.APIURL)
}

// writeReady writes the file in one step: who sees it sees all of it.
func writeReady(path string, s *stack.Stack) error {
	text, err := json.MarshalIndent(map[string]any{
		"api_url": s.APIURL, "aws_endpoint": s.AWSEndpoint, "redis_url": s.RedisURL, "queues": s.QueueURLs,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("error encoding the ready file: %w", err)
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("error writing the ready file: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("error writing the ready file: %w", err)
	}
	return nil
}

// isTerminal tells whether colours make sense: see https://no-color.org.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
