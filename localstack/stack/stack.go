// Package stack is the whole system on one machine: Redis, a local AWS, the functions as real
// Lambda processes, and the front door.
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

// Config says what to run and where.
type Config struct {
	// APIAddr and AWSAddr are host:port; port 0 takes a free one. Defaults 127.0.0.1:4000 and
	// 127.0.0.1:4566.
	APIAddr, AWSAddr string
	// RedisURL is a Redis to use. Empty: a redis-server from the PATH, or else an embedded
	// miniredis.
	RedisURL string
	// Queues are the names of the queues. One that ends in ".fifo" is a FIFO queue. Default orders,
	// emails.
	Queues []string
	// Processes is how many processes each function has. Default 4.
	Processes int
	// Tick is how often the dispatcher is invoked. Default one minute.
	Tick time.Duration
	// LockNodes is how many further Redis servers serve quorum locks. Zero is none.
	LockNodes int
	// Consumers maps a queue to the folder of a Lambda function of this repository,
	// "./localstack/sampleconsumer", that gets its messages.
	Consumers map[string]string
	// Log takes what the functions print. Default: nowhere.
	Log io.Writer
	// Progress is told what is being done, in few words. Default: nobody.
	Progress func(string)
	// Env is further environment for every function.
	Env []string
	// Target, when not nil, is told the address of the local AWS before the functions start, for a
	// proxy between them.
	Target func(endpoint string) error
	// Gateway tunes the front door: RequireIAM, Credentials, Authorizers and StageVariables.
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
	// APIURL is the front door, AWSEndpoint the local AWS.
	APIURL, AWSEndpoint string
	// RedisURL is the Redis that is used, and RedisKind which that is: "given", "redis-server" or
	// "miniredis".
	RedisURL, RedisKind string
	// QueueURLs are the SQS queues by name.
	QueueURLs map[string]string
	// SQS is a client for them.
	SQS *sqs.Client

	cfg    Config
	log    io.Writer
	redis  *redisserver.Server // when it is a child of ours
	fleets map[string]*lambdaproc.Fleet

	mu      sync.Mutex
	closers []func() error
	closed  bool
}

// Start starts everything and returns when every function answers. A process can have one Stack:
// the state of kumo, its AWS, is the process's.
func Start(ctx context.Context, cfg Config) (*Stack, error) {
	cfg = cfg.withDefaults()
	s := &Stack{cfg: cfg, fleets: make(map[string]*lambdaproc.Fleet), log: &lines{out: cfg.Log}}
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

func inUse(what, addr, flag string, err error) error {
	if strings.Contains(err.Error(), "address already in use") {
		return fmt.Errorf("%s is in use: something listens there already, perhaps another stack; stop it or choose another address for %s with %s", addr, what, flag)
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// build compiles the functions beside the rest of the start.
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

func (s *Stack) startRedis(ctx context.Context) error {
	if s.cfg.RedisURL != "" {
		s.RedisURL, s.RedisKind = s.cfg.RedisURL, "given"
		return nil
	}
	server, err := redisserver.Start(ctx, redisserver.Options{Durable: true})
	if err == nil {
		s.redis, s.RedisURL, s.RedisKind = server, server.URL(), "redis-server"
		s.onClose(server.Close)
		return nil
	}
	if !errors.Is(err, redisserver.ErrMissing) {
		return err
	}
	mini, err := redisserver.StartMini()
	if err != nil {
		return err
	}
	s.RedisURL, s.RedisKind = mini.URL(), "miniredis"
	s.onClose(mini.Close)
	return nil
}

// startLockNodes starts independent servers for quorum locks, where there is a redis-server.
func (s *Stack) startLockNodes(ctx context.Context) ([]string, error) {
	var urls []string
	for range s.cfg.LockNodes {
		server, err := redisserver.Start(ctx, redisserver.Options{})
		if errors.Is(err, redisserver.ErrMissing) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		s.onClose(server.Close)
		urls = append(urls, server.URL())
	}
	return urls, nil
}

func (s *Stack) serve(listener net.Listener, invoker gateway.Invoker) {
	cfg := s.cfg.Gateway
	cfg.Invoker, cfg.Routes = invoker, append(routes.All(), routes.Fallbacks()...)
	server := &http.Server{Handler: gateway.New(cfg), ReadHeaderTimeout: time.Minute}
	s.onClose(server.Close)
	go func() { _ = server.Serve(listener) }()
}

func (s *Stack) tick(invoker gateway.Invoker) {
	t := ticker.Start(s.cfg.Tick, func(ctx context.Context) error { return dispatch(ctx, invoker) }, s.complain)
	s.onClose(func() error { t.Stop(); return nil })
}

// dispatch invokes the dispatcher, and again while it is not reached, as EventBridge Scheduler
// does: its processes may just be starting.
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

// complain logs what went wrong in the background.
func (s *Stack) complain(err error) { _, _ = fmt.Fprintf(s.log, "localstack: %v\n", err) }

// StopRedis takes Redis away, as a crash would. It works when Redis is a child of the stack.
func (s *Stack) StopRedis(context.Context) error {
	if s.redis == nil {
		return errors.New("this stack's redis is not its own: it cannot be stopped")
	}
	return s.redis.Kill()
}

// StartRedis brings it back with its data.
func (s *Stack) StartRedis(ctx context.Context) error {
	if s.redis == nil {
		return errors.New("this stack's redis is not its own: it cannot be started")
	}
	return s.redis.Restart(ctx)
}

// Kill ends every process of a function as a crash would; they are started again.
func (s *Stack) Kill(function string) int { return s.fleets[function].Kill() }

func (s *Stack) onClose(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// Close stops everything, in the reverse order of the start. It may be called twice.
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
