// The local stack runs the complete system on this machine, without Docker and without an AWS
// account.
//
//	go run ./localstack up
//	go run ./localstack demo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/shared/redisconn"
)

const usage = `Usage: go run ./localstack <command> [flags]

Commands:
  up     start the system and keep it running until Ctrl-C
  demo   start the system, run a scenario on it, check each result, and stop

Flags:
`

// errUsage reports an invalid command line. The usage has already been printed.
var errUsage = errors.New("invalid command line")

func main() {
	redisconn.SilenceDriver()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, errUsage):
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
		return errUsage
	}
	if flags.Parse(args[1:]) != nil { // Parse has printed the error and the usage
		return errUsage
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(errOut, "unexpected argument %q; %s takes flags only\n", flags.Arg(0), args[0])
		flags.Usage()
		return errUsage
	}

	switch args[0] {
	case "up":
		return up(ctx, o, out, errOut)
	case "demo":
		return runDemo(ctx, o.withoutTofu, out, errOut)
	default:
		_, _ = fmt.Fprintf(errOut, "unknown command %q\n", args[0])
		flags.Usage()
		return errUsage
	}
}

// options holds the flags.
type options struct {
	api, aws, redis, queues, ready, log string
	processes, lockNodes                int
	tick                                time.Duration
	iam, withoutTofu                    bool
	consumers                           consumers
}

func (o *options) register(f *flag.FlagSet) {
	f.StringVar(&o.api, "api-addr", "127.0.0.1:4000", "`address` of the API")
	f.StringVar(&o.aws, "aws-addr", "127.0.0.1:4566", "`address` of SQS, DynamoDB and the Lambda Runtime API")
	f.StringVar(&o.redis, "redis", "",
		"`URL` of the Redis to use (default: start redis-server, or an embedded miniredis if redis-server is missing)")
	f.StringVar(&o.queues, "queues", "orders,emails",
		"`names` of the queues, separated by commas; a name that ends in .fifo is a FIFO queue")
	f.StringVar(&o.ready, "ready-file", "", "`path` of a JSON file to write when the system is up")
	f.StringVar(&o.log, "log", "",
		"`path` of a file for the output of the functions, or - for the terminal (default: discarded)")
	f.IntVar(&o.processes, "functions", 4, "number of processes of each function")
	f.IntVar(&o.lockNodes, "lock-nodes", 3, "number of additional Redis servers for quorum locks; 0 disables them")
	f.DurationVar(&o.tick, "tick", time.Minute, "interval between invocations of the dispatcher")
	f.Var(&o.consumers, "consumer", "`queue=folder` of a Lambda function that receives the messages of the queue, "+
		"for example orders=./localstack/sampleconsumer; may be repeated")
	f.BoolVar(&o.withoutTofu, "without-tofu", false,
		"demo: manage policies with the command line even if tofu or terraform is installed")
	f.BoolVar(&o.iam, "require-iam", false, "answer 403 to requests without a signature")
}

// consumers is a repeatable flag. It maps a queue to the folder of its consumer function.
type consumers map[string]string

// String implements flag.Value.
func (c *consumers) String() string { return "" }

// Set implements flag.Value.
func (c *consumers) Set(text string) error {
	queue, folder, found := strings.Cut(text, "=")
	if !found || queue == "" || folder == "" {
		return errors.New("must be queue=folder, for example orders=./localstack/sampleconsumer")
	}
	if *c == nil {
		*c = make(map[string]string)
	}
	(*c)[queue] = folder
	return nil
}

// isTerminal reports whether out is a terminal and NO_COLOR is not set. See https://no-color.org.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
