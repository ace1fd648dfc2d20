package stack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/localstack/stack"
)

// patience is the timeout of each wait. It is shorter than the ticker's interval of one minute.
const patience = 30 * time.Second

// log records the output of the functions.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// system is the stack that all tests share, because a process can run only one.
var (
	system *stack.Stack
	api    *client.Client
	output = &log{}
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	system, err = stack.Start(context.Background(), stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Processes: 2, Log: output,
		Consumers: map[string]string{"orders": "./localstack/sampleconsumer"},
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	if api, err = client.New(client.Config{Endpoint: system.APIURL, Auth: client.AuthNone}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func TestStack(t *testing.T) {
	t.Parallel()
	t.Run("restarts a crashed function", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, 2, system.Kill("lock"))
		require.Eventually(t, func() bool {
			return output.count("function lock ended (signal: killed) and is started again") == 2
		}, patience, time.Millisecond)
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			l, err := api.TryLock(ctx, "report", client.LockOptions{})
			return err == nil && l.Unlock(ctx) == nil
		}, patience, time.Millisecond)
	})

	t.Run("delivers jobs to a consumer function", func(t *testing.T) {
		t.Parallel()
		orders := api.Queue("orders")
		pushed, err := orders.Push(t.Context(), client.Job{
			Payload: map[string]int{"fail_attempts": 1}, MaxAttempts: 3, AckTimeout: time.Minute,
			Backoff: &client.Backoff{Initial: 10 * time.Millisecond, Max: 20 * time.Millisecond},
		})
		require.NoError(t, err)
		var job client.JobInfo
		require.Eventually(t, func() bool {
			job, err = orders.Get(t.Context(), pushed.ID)
			return err == nil && job.State == client.JobSucceeded
		}, patience, 10*time.Millisecond)
		require.Equal(t, 2, job.Attempt, "the consumer must nack the first attempt and acknowledge the second")
		require.Contains(t, job.LastError, "attempt 1 of 1 failed")
	})

	t.Run("invokes the dispatcher at the start", func(t *testing.T) {
		t.Parallel()
		require.Eventually(t, func() bool {
			health, err := api.Health(t.Context())
			return err == nil && slices.ContainsFunc(health.Checks, func(c client.HealthCheck) bool {
				return c.Name == "dispatcher" && c.Status == "ok"
			})
		}, patience, 10*time.Millisecond)
	})
}
