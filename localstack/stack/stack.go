// Package stack runs the complete system on one machine: Redis, a local AWS, the functions as real
// Lambda processes, and an API gateway.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/localstack/lambdaproc"
	"github.com/sluicehq/sluice/localstack/localaws"
	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/localstack/ticker"
	"github.com/sluicehq/sluice/shared/routes"
)

// Config describes a stack.
type Config struct {
	// APIAddr and AWSAddr are host:port; port 0 selects a free port. They default to 127.0.0.1:4000
	// and 127.0.0.1:4566.
	APIAddr, AWSAddr string
	// RedisURL is the URL of an existing Redis. By default the stack starts redis-server from the
	// PATH, or an embedded miniredis if redis-server is not installed.
	RedisURL string
	// Queues lists the names of the queues. A name that ends in ".fifo" is a FIFO queue. Default:
	// orders, emails.
	Queues []string
	// Processes is the number of processes of each function. Default 4.
	Processes int
	// Tick is the interval between invocations of the dispatcher. Default one minute.
	Tick time.Duration
	// LockNodes is the number of additional Redis servers for quorum locks. Zero disables them.
	LockNodes int
	// Consumers maps the name of a queue to the folder of the Lambda function that receives its
	// messages, for example "./localstack/sampleconsumer". The folder is relative to the
	// repository.
	Consumers map[string]string
	// Log receives the output of the functions. Default: discarded.
	Log io.Writer
	// Progress receives the description of a step that takes longer than 2 s. Optional.
	Progress func(string)
	// Env adds variables, "NAME=value", to the environment of every function.
	Env []string
	// Target receives the URL of the local AWS before the functions start. A proxy between the
	// functions and the local AWS can forward calls to this URL. Optional.
	Target func(endpoint string) error
	// Gateway configures the API gateway. The stack sets Invoker and Routes.
	Gateway gateway.Config
}

func (c Config) withDefaults() Config {
	if c.APIAddr == "" {
		c.APIAddr = "127.0.0.1:4000"
	}
	if c.AWSAddr == "" {
		c.AWSAddr = "127.0.0.1:4566"
	}
	if len(c.Queues) == 0 {
		c.Queues = []string{"orders", "emails"}
	}
	if c.Processes == 0 {
		c.Processes = 4
	}
	if c.Tick == 0 {
		c.Tick = time.Minute
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	return c
}

// Stack is a running system.
type Stack struct {
	// APIURL is the URL of the API, and AWSEndpoint is the URL of the local AWS.
	APIURL, AWSEndpoint string
	// RedisURL is the URL of Redis. RedisKind is "given", "redis-server" or "miniredis".
	RedisURL, RedisKind string
	// QueueURLs maps the names of the queues to the URLs of their SQS queues.
	QueueURLs map[string]string
	// SQS is a client for the queues.
	SQS *sqs.Client

	cfg    Config
	log    io.Writer
	redis  *redisserver.Server // nil unless this stack started a redis-server
	fleets map[string]*lambdaproc.Fleet

	mu      sync.Mutex
	closers []func() error
	closed  bool
}

// Start starts a Stack and returns when every function answers. A process can run only one Stack,
// because all kumo servers in a process share their state.
func Start(ctx context.Context, cfg Config) (*Stack, error) {
	cfg = cfg.withDefaults()
	s := &Stack{cfg: cfg, fleets: make(map[string]*lambdaproc.Fleet), log: &syncWriter{out: cfg.Log}}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.cfg.APIAddr) //nolint:noctx // a loopback listen does not wait
	if err != nil {
		return inUse("the API", s.cfg.APIAddr, "--api-addr", err)
	}
	s.onClose(func() error { return ignoreClosed(listener.Close()) })
	aws, err := localaws.Start(s.cfg.AWSAddr)
	if err != nil {
		return inUse("AWS", s.cfg.AWSAddr, "--aws-addr", err)
	}
	s.onClose(aws.Close)
	s.APIURL, s.AWSEndpoint, s.SQS = "http://"+listener.Addr().String(), aws.Endpoint, sqs.NewFromConfig(aws.Config())

	if s.cfg.Target != nil {
		if err := s.cfg.Target(s.AWSEndpoint); err != nil {
			return err
		}
	}
	binaries, built := s.build(ctx)
	if err := errors.Join(s.startRedis(ctx), s.createQueues(ctx), s.createTables(ctx, aws)); err != nil {
		return err
	}
	nodes, err := s.startLockNodes(ctx)
	if err != nil {
		return err
	}
	if err := <-built; err != nil {
		return err
	}
	invoker := aws.NewInvoker()
	if err := s.startFunctions(ctx, aws, binaries, nodes); err != nil {
		return err
	}
	s.serve(listener, invoker)
	if err := s.awaitFunctions(ctx, invoker); err != nil {
		return err
	}
	if err := s.startConsumers(ctx, aws, invoker, binaries); err != nil {
		return err
	}
	s.tick(invoker) //nolint:contextcheck // the ticker outlives the start
	return nil
}

// inUse returns an error that names the flag to change if the address is in use, and err otherwise.
func inUse(server, addr, flag string, err error) error {
	if strings.Contains(err.Error(), "address already in use") {
		return fmt.Errorf("%s is in use, perhaps by another stack; stop it, or choose another address for %s with %s",
			addr, server, flag)
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// build compiles the functions in the background. It immediately returns the folder of the binaries
// and a channel that receives nil or the error of the compilation.
func (s *Stack) build(ctx context.Context) (dir string, done <-chan error) {
	result := make(chan error, 1)
	dir, err := os.MkdirTemp("", "sluice-functions-")
	if err != nil {
		result <- fmt.Errorf("error making the folder for the functions: %w", err)
		return "", result
	}
	s.onClose(func() error { return os.RemoveAll(dir) })
	go func() {
		root, err := lambdaproc.Root()
		if err == nil {
			slow := time.AfterFunc(2*time.Second, func() {
				s.cfg.Progress("building the functions (the first time takes a minute)…")
			})
			err = lambdaproc.Build(ctx, root, dir, append(slices.Collect(maps.Values(s.cfg.Consumers)),
				"./functions/...")...)
			slow.Stop()
		}
		result <- err
	}()
	return dir, result
}

func (s *Stack) serve(listener net.Listener, invoker gateway.Invoker) {
	cfg := s.cfg.Gateway
	cfg.Invoker, cfg.Routes = invoker, append(routes.All(), routes.Fallbacks()...)
	server := &http.Server{Handler: gateway.New(cfg), ReadHeaderTimeout: time.Minute}
	s.onClose(server.Close)
	go func() { _ = server.Serve(listener) }()
}

func (s *Stack) tick(invoker gateway.Invoker) {
	t := ticker.Start(s.cfg.Tick, func(ctx context.Context) error { return dispatch(ctx, invoker) }, s.logError)
	s.onClose(func() error { t.Stop(); return nil })
}

// dispatch invokes the dispatcher. Like EventBridge Scheduler, it retries until a process receives
// the invocation, because the processes may still be starting.
func dispatch(ctx context.Context, invoker gateway.Invoker) error {
	for {
		_, err := invoker.Invoke(ctx, dispatcher, []byte("{}"))
		if failure := (*gateway.FunctionError)(nil); err == nil || ctx.Err() != nil || errors.As(err, &failure) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// logError logs an error of a background task.
func (s *Stack) logError(err error) { _, _ = fmt.Fprintf(s.log, "localstack: %v\n", err) }

// Kill kills every process of a function, like a crash, and returns the number of killed processes.
// The stack restarts them.
func (s *Stack) Kill(function string) int { return s.fleets[function].Kill() }

func (s *Stack) onClose(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// Close stops everything in the reverse order of the start. It may be called more than once.
func (s *Stack) Close() error {
	s.mu.Lock()
	closers := s.closers
	if s.closed {
		closers = nil
	}
	s.closed = true
	s.mu.Unlock()
	var errs []error
	for _, closer := range slices.Backward(closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
