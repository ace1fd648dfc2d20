package jobs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/redisconn"
)

const queue = "orders"

// cluster is a Redis and a DynamoDB that several processes share.
type cluster struct {
	redis *redistest.Redis
	aws   *awstest.AWS
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	redisconn.SilenceDriver()
	return &cluster{redis: redistest.Single(t), aws: awstest.Start(t)}
}

func (c *cluster) table(t testing.TB) string {
	t.Helper()
	return c.aws.CreateTable(t, outbox.TableInput(redistest.Name("outbox")))
}

// process simulates a process that uses the Service. The embedded faults intercept its calls to the
// stores and can make them fail.
type process struct {
	*Service
	faults
}

// start starts a process that ends with the test.
func (c *cluster) start(t testingT, table string) *process {
	p := &process{}
	client := redis.NewClient(&redis.Options{Addr: c.redis.Server.Addr(), Protocol: 2, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(&p.faults)
	conn := redisconn.FromClient(client, redisconn.Config{
		CallTimeout: 10 * time.Second, Breaker: redisconn.BreakerConfig{Failures: 1 << 30},
	})
	queues, err := delayqueue.New(conn, delayqueue.Config{Shards: 1})
	require.NoError(t, err)

	options := c.aws.DynamoDB.Options()
	options.Retryer, options.HTTPClient = aws.NopRetryer{}, &p.faults
	p.Service = New(queues, outbox.New(dynamodb.New(options), table), slog.New(slog.DiscardHandler))
	p.fanOut = 1 // makes the order of an operation's calls deterministic
	p.hold = 0
	return p
}

// failure is the way in which one call to a store fails.
type failure int

const (
	none    failure = iota
	refused         // the store does not receive the call
	lost            // the store executes the call, but its answer is lost

)

var errUnreachable = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("unreachable")}

// faults makes the calls of a process fail. It is a hook of the process's Redis client and the HTTP
// client of its DynamoDB client.
type faults struct {
	mu                    sync.Mutex
	redisDown, dynamoDown bool
	calls                 int           // number of calls since the call to run
	query                 bool          // the last call was a query
	script                map[int]event // events by the index of the call
	injected              int           // number of failures so far
}

type event struct {
	failure failure
	do      func() // runs before the call, if not nil
}

// run runs an operation of the process. The argument script maps the index of a store call within
// the operation to the event of that call.
func (f *faults) run(script map[int]event, operation func()) {
	f.mu.Lock()
	f.calls, f.query, f.script = 0, false, script
	f.mu.Unlock()
	operation()
	f.mu.Lock()
	f.script = nil
	f.mu.Unlock()
}

// next runs the event of the next call and returns the failure of the call. It counts consecutive
// queries as one call.
func (f *faults) next(down *bool, query bool) failure {
	f.mu.Lock()
	var e event
	if !query || !f.query {
		e = f.script[f.calls]
		f.calls++
	}
	f.query = query
	if e.failure != none {
		f.injected++
	}
	f.mu.Unlock()
	if e.do != nil {
		e.do()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if *down {
		f.injected++
		return refused
	}
	return e.failure
}

// DialHook implements redis.Hook.
func (f *faults) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (f *faults) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.call(func() error { return next(ctx, cmd) }, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (f *faults) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return f.call(func() error { return next(ctx, cmds) }, cmds...)
	}
}

func (f *faults) call(send func() error, cmds ...redis.Cmder) error {
	which := f.next(&f.redisDown, false)
	var err error = errUnreachable
	if which != refused {
		err = send()
	}
	if which == refused || which == lost {
		err = errUnreachable
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
	}
	return err
}

// Do implements the HTTP client of the AWS SDK.
func (f *faults) Do(r *http.Request) (*http.Response, error) {
	which := f.next(&f.dynamoDown, strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Query"))
	if which == refused {
		return nil, errUnreachable
	}
	answer, err := http.DefaultClient.Do(r)
	if err == nil && which == lost {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return nil, errUnreachable
	}
	return answer, err
}
