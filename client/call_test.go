package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestRetries(t *testing.T) {
	t.Parallel()
	t.Run("repeats only idempotent calls", func(t *testing.T) {
		t.Parallel()
		ctx := t.Context()
		for name, test := range map[string]struct {
			call   func(*client.Client) error
			repeat bool
		}{
			"a limit check": {func(c *client.Client) error {
				_, err := c.Allow(ctx, "login", "ann")
				return err
			}, false},
			"a repeatable limit check": {func(c *client.Client) error {
				_, err := c.Allow(ctx, "login", "ann", client.Repeatable())
				return err
			}, true},
			"several limit checks": {func(c *client.Client) error {
				_, _, err := c.CheckAll(ctx, []client.Check{{"login", "ann", 1}})
				return err
			}, false},
			"a refund": {func(c *client.Client) error {
				_, err := c.Refund(ctx, "login", "ann", 1)
				return err
			}, false},
			"a peek": {func(c *client.Client) error {
				_, err := c.Peek(ctx, "login", "ann")
				return err
			}, true},
			"a reset": {func(c *client.Client) error { return c.Reset(ctx, "login", "ann") }, true},
			"a forced release": {func(c *client.Client) error {
				_, err := c.ForceRelease(ctx, "report", "")
				return err
			}, false},
			"a redrive without IDs": {func(c *client.Client) error {
				_, err := c.Queue("q").Redrive(ctx, client.RedriveOptions{Limit: 10})
				return err
			}, false},
			"a redrive by ID": {func(c *client.Client) error {
				_, err := c.Queue("q").Redrive(ctx, client.RedriveOptions{IDs: []string{"a"}})
				return err
			}, true},
			"a push": {func(c *client.Client) error {
				_, err := c.Queue("q").Push(ctx, client.Job{})
				return err
			}, true},
			"a cancel": {func(c *client.Client) error {
				_, err := c.Queue("q").Cancel(ctx, "a")
				return err
			}, true},
			"storing a policy": {func(c *client.Client) error {
				_, err := c.PutPolicy(ctx, client.Policy{Name: "p"})
				return err
			}, true},
			"storing a policy with a condition": {func(c *client.Client) error {
				_, err := c.PutPolicy(ctx, client.Policy{Name: "p"}, client.IfNoneMatch())
				return err
			}, false},
			"deleting a policy with a condition": {func(c *client.Client) error {
				return c.DeletePolicy(ctx, "p", client.IfMatch(`"1"`))
			}, false},
		} {
			for trouble, fail := range map[string]func(http.ResponseWriter){
				"its answer is lost": cut,
				"the gateway times out": func(w http.ResponseWriter) {
					say(w, 504, `{"message":"Endpoint request timed out"}`)
				},
				"the function exceeds its deadline": func(w http.ResponseWriter) {
					say(w, 504, `{"code":"deadline_exceeded","status":504,"detail":"late"}`)
				},
			} {
				t.Run(name+", when "+trouble, func(t *testing.T) {
					t.Parallel()
					s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fail(w) })
					require.Error(t, test.call(s.client(t, client.Config{Retries: 2})))
					want := 1
					if test.repeat {
						want = 3
					}
					require.Len(t, s.got(), want)
				})
			}
		}
	})

	t.Run("repeats calls that never reached the API", func(t *testing.T) {
		t.Parallel()
		var dials atomic.Int64
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}
		}}
		c, err := client.New(client.Config{Endpoint: "http://sluice.test", Auth: client.AuthNone, Retries: 2,
			HTTPClient: &http.Client{Transport: transport}})
		require.NoError(t, err)
		_, err = c.Allow(t.Context(), "login", "ann")
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.EqualValues(t, 3, dials.Load())

		s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 0 {
				say(w, 429, `{"message":"Too Many Requests"}`)
				return
			}
			say(w, 200, `{"allowed":true}`)
		})
		allowed, err := s.client(t, client.Config{}).Allow(t.Context(), "login", "ann")
		require.NoError(t, err, "the client retries after the gateway throttled the request")
		require.True(t, allowed)
	})

	t.Run("waits for Retry-After, but not past the deadline", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 0 {
				say(w, 503, `{"code":"store_unavailable","status":503,"retry_after_ms":300}`)
				return
			}
			say(w, 200, `{"queues":[]}`)
		})
		c := s.client(t, client.Config{})
		started := time.Now()
		_, err := c.Queues(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(started), 300*time.Millisecond)

		slow := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "20")
			say(w, 503, `{"code":"store_unavailable","status":503}`)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		started = time.Now()
		_, err = slow.client(t, client.Config{}).Queues(ctx)
		require.ErrorIs(t, err, client.ErrStoreUnavailable)
		require.Less(t, time.Since(started), 5*time.Second, "a wait that would exceed the deadline is not started")
		require.Len(t, slow.got(), 1)
	})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := s.client(t, client.Config{Timeout: 50 * time.Millisecond, Retries: -1}).Queues(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "error listing the queues: no answer within 50ms")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.client(t, client.Config{}).Queues(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestError(t *testing.T) {
	t.Parallel()
	t.Run("matches the sentinel of its code", func(t *testing.T) {
		t.Parallel()
		for code, want := range map[string]struct {
			status   int
			sentinel error
		}{
			"invalid_request": {400, client.ErrInvalidRequest}, "not_found": {404, client.ErrNotFound},
			"job_not_found":   {404, client.ErrJobNotFound},
			"queue_not_found": {404, client.ErrQueueNotFound}, "policy_not_found": {404, client.ErrPolicyNotFound},
			"lock_held":     {409, client.ErrLockHeld},
			"lock_not_held": {409, client.ErrLockNotHeld}, "job_conflict": {409, client.ErrJobConflict},
			"precondition_failed": {412, client.ErrPreconditionFailed},
			"payload_too_large":   {413, client.ErrPayloadTooLarge}, "quota_exceeded": {429, client.ErrQuotaExceeded},
			"store_unavailable": {503, client.ErrStoreUnavailable},
		} {
			s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				say(w, want.status, `{"code":"`+code+`","status":400,"detail":"what happened",
					"errors":[{"field":"a","message":"b"}],"state":"dead"}`)
			})
			_, err := s.client(t, client.Config{Retries: -1}).Queues(t.Context())
			require.ErrorIs(t, err, want.sentinel, code)
			var e *client.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "req-7", e.RequestID)
			require.Equal(t, "what happened", e.Detail)
			require.Equal(t, client.JobDead, e.State)
			require.Equal(t, []client.Field{{Field: "a", Message: "b"}}, e.Fields)
			require.Equal(t, want.status == 404, errors.Is(err, client.ErrNotFound), code)
		}
	})

	t.Run("describes an answer that is not from Sluice", func(t *testing.T) {
		t.Parallel()
		for name, test := range map[string]struct {
			status int
			text   string
			want   string
		}{
			"a web page": {200, "<html>",
				"error listing the queues: " +
					"the answer is not from Sluice; check the endpoint: " +
					"invalid character '<' looking for beginning of value"},
			"another API's 404": {404, `{"message":"Not Found"}`,
				"error listing the queues: the answer, 404 (Not Found), is not from Sluice; check the endpoint"},
			"the gateway's 403": {403, `{"message":"Forbidden"}`,
				"error listing the queues: the gateway refused the request (Forbidden); check the credentials, " +
					"the region, the clock and the permission to invoke the API"},
			"the gateway's 500": {500, `{"message":"Internal Server Error"}`,
				"error listing the queues: the gateway answered 500 (Internal Server Error)"},
			"a redirect": {302, ``,
				"error listing the queues: the answer, 302, is not from Sluice; check the endpoint"},
			"an oversized answer": {200, strings.Repeat(" ", 16<<20+1),
				"error listing the queues: the answer exceeds 16777216 bytes"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", "/elsewhere")
					say(w, test.status, test.text)
				})
				_, err := s.client(t, client.Config{Retries: -1}).Queues(t.Context())
				require.EqualError(t, err, test.want)
				require.Len(t, s.got(), 1)
			})
		}
	})
}
