package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// server records what it is asked and answers with what its script says for the n-th request, from
// 0.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
}

type received struct {
	method, path string
	header       http.Header
	body         map[string]any
}

func serve(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got := received{method: r.Method, path: r.URL.RequestURI(), header: r.Header}
		_ = json.Unmarshal(text, &got.body)
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, got)
		s.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) got() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.requests...)
}

func (s *server) client(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	cfg.Endpoint, cfg.Auth = s.URL, client.AuthNone
	c, err := client.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func say(w http.ResponseWriter, status int, text string) {
	mediaType := "application/json"
	if status >= 400 && strings.Contains(text, `"code"`) {
		mediaType = "application/problem+json"
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("X-Request-Id", "req-7")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func TestWhatCannotBeDoneTwiceIsNotRepeatedOnceItMayHaveBeenDone(t *testing.T) {
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
		"a limit check, on demand": {func(c *client.Client) error {
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
		"a redrive by number": {func(c *client.Client) error {
			_, err := c.Queue("q").Redrive(ctx, nil, 10)
			return err
		}, false},
		"a redrive by id": {func(c *client.Client) error {
			_, err := c.Queue("q").Redrive(ctx, []string{"a"}, 0)
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
		"storing one on a condition": {func(c *client.Client) error {
			_, err := c.PutPolicy(ctx, client.Policy{Name: "p"}, client.IfNoneMatch())
			return err
		}, false},
		"deleting one on a condition": {func(c *client.Client) error {
			return c.DeletePolicy(ctx, "p", client.IfMatch(`"1"`))
		}, false},
	} {
		for trouble, fail := range map[string]func(http.ResponseWriter){
			"its answer is lost": cut,
			"the gateway times out": func(w http.ResponseWriter) {
				say(w, 504, `{"message":"Endpoint request timed out"}`)
			},
			"the function's time ran out": func(w http.ResponseWriter) {
				say(w, 504, `{"code":"deadline_exceeded","status":504,"detail":"late"}`)
			},
		} {
			t.Run(name+" when "+trouble, func(t *testing.T) {
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
}

func TestWhatNeverArrivedIsAlwaysRepeated(t *testing.T) {
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
	require.NoError(t, err, "what the gateway throttled was not passed on")
	require.True(t, allowed)
}

func TestRetryAfterIsObeyedAndTheContextStillMore(t *testing.T) {
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
	require.Less(t, time.Since(started), 5*time.Second, "a wait that the deadline would cut is not begun")
	require.Len(t, slow.got(), 1)
}

func TestAnAnswerThatNeverComesEndsWithTheTimeoutAndIsNotTheCallersDeadline(t *testing.T) {
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

func TestEveryErrorOfTheContractMatchesItsSentinel(t *testing.T) {
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
			say(w, want.status,
				`{"code":"`+code+`","status":400,"detail":"what happened","errors":[{"field":"a","message":"b"}],"state":"dead"}`)
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
}

func TestAnswersThatAreNotTheAPIsAreSaidToBeSo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		text   string
		want   string
	}{
		"a web page": {200, "<html>",
			"error listing the queues: the answer is not the API's: is the endpoint right?: invalid character '<' looking for beginning of value"},
		"another API's 404": {404, `{"message":"Not Found"}`,
			"error listing the queues: the answer is 404 (Not Found), and not the API's: is the endpoint right?"},
		"the gateway's 403": {403, `{"message":"Forbidden"}`,
			"error listing the queues: the gateway refused the request (Forbidden): are the credentials, the region and the clock right, and may they invoke the API?"},
		"the gateway's 500": {500, `{"message":"Internal Server Error"}`,
			"error listing the queues: the gateway answered 500 (Internal Server Error)"},
		"a redirect": {302, ``,
			"error listing the queues: the answer is 302, and not the API's: is the endpoint right?"},
		"more than it may be": {200, strings.Repeat(" ", 16<<20+1),
			"error listing the queues: the answer is over 16777216 bytes"},
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
}

func TestTheHostSaysWhichServiceAndRegionToSignFor(t *testing.T) {
	t.Parallel()
	for endpoint, scope := range map[string]string{
		"https://abc.execute-api.ap-south-1.amazonaws.com":         "/ap-south-1/execute-api/aws4_request",
		"https://abc.execute-api.ap-south-1.amazonaws.com/staging": "/ap-south-1/execute-api/aws4_request",
		"https://abc.lambda-url.us-west-2.on.aws":                  "/us-west-2/lambda/aws4_request",
		"https://sluice.example.com":                               "/eu-west-3/execute-api/aws4_request",
	} {
		var seen *http.Request
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			seen = r
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(`{"queues":[]}`))}, nil
		})
		cfg := client.Config{Endpoint: endpoint,
			Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
			HTTPClient:  &http.Client{Transport: transport}}
		if strings.Contains(endpoint, "example.com") {
			cfg.Region = "eu-west-3"
		}
		c, err := client.New(cfg)
		require.NoError(t, err)
		_, err = c.Queues(t.Context())
		require.NoError(t, err)
		require.Contains(t, seen.Header.Get("Authorization"), scope)
		require.True(t, strings.HasSuffix(seen.URL.Path, "/v1/queues"))
		require.Equal(t, strings.Contains(endpoint, "staging"), strings.HasPrefix(seen.URL.Path, "/staging/"))
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAConfigThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]client.Config{
		"the endpoint is missing: give the URL of the API":                                                         {},
		`the endpoint "localhost:4000" is not a URL such as https://abc123.execute-api.eu-central-1.amazonaws.com`: {Endpoint: "localhost:4000"},
		"the endpoint must have no query, fragment or user":                                                        {Endpoint: "https://x.example?a=b"},
		`auth "basic" is unknown: it must be "aws_iam" or "none"`:                                                  {Endpoint: "https://x.example", Auth: "basic"},
		"the timeout must not be negative":                                                                         {Endpoint: "https://x.example", Timeout: -1},
	} {
		_, err := client.New(cfg)
		require.EqualError(t, err, want)
	}
}

func TestTheTraceContextOfTheCallerTravelsWithEveryRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 202, `{"id":"a"}`) })
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c := s.client(t, client.Config{Traceparent: func(context.Context) string { return trace }, UserAgent: "shop/2"})
	_, err := c.Queue("q").Push(t.Context(), client.Job{})
	require.NoError(t, err)
	require.Equal(t, trace, s.got()[0].header.Get("Traceparent"))
	require.Equal(t, "shop/2 sluice-go/1", s.got()[0].header.Get("User-Agent"))
}
