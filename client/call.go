package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxResponse is the maximum size of a response body, in bytes. Lambda limits a response to 6 MiB.
const maxResponse = 16 << 20

// call describes one request to the API.
type call struct {
	op     string // the operation, for errors: `acquiring the lock "report"`
	method string
	path   string // escaped
	query  url.Values
	header map[string]string
	body   any // encoded as JSON; nil sends no body
	out    any // receives the JSON of the answer; nil discards it
	retry  retryPolicy
	// timeout is the time limit of one attempt. Zero means Config.Timeout.
	timeout time.Duration
	// statuses are the status codes outside 2xx whose body is decoded into out.
	statuses []int
}

// reply is the result of an attempt, without the body. It is also valid if the attempt failed.
type reply struct {
	status int
	header http.Header
	// started is the time at which the last attempt started.
	started time.Time
	// uncertain reports that an attempt failed but may have taken effect.
	uncertain bool
}

// do sends a call, and retries it as q.retry and Config.Retries allow.
//
// The error is an [*Error], or wraps the error of ctx.
func (c *Client) do(ctx context.Context, q call) (reply, error) {
	body, err := q.encode()
	if err != nil {
		return reply{}, err
	}

	uncertain := false
	for attempt := 0; ; attempt++ {
		r, err := c.attempt(ctx, q, body)
		if err == nil {
			r.uncertain = uncertain
			return r, nil
		}

		uncertain = uncertain || mayHaveHappened(ctx, err)
		r.uncertain = uncertain

		e, ok := errors.AsType[*Error](err)
		if !ok || attempt >= c.cfg.Retries || !q.retry.allows(e) || !pause(ctx, backoff(attempt, e.RetryAfter)) {
			return r, err
		}
	}
}

// once sends a call without retries, for callers that have their own retry loop.
func (c *Client) once(ctx context.Context, q call) (reply, error) {
	body, err := q.encode()
	if err != nil {
		return reply{}, err
	}
	r, err := c.attempt(ctx, q, body)
	r.uncertain = err != nil && mayHaveHappened(ctx, err)
	return r, err
}

// mayHaveHappened reports whether the API may have carried out an attempt that failed with err.
func mayHaveHappened(ctx context.Context, err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.uncertain()
	}
	return ctx.Err() != nil
}

func (q call) encode() ([]byte, error) {
	if q.body == nil {
		return nil, nil
	}
	body, err := encodeJSON(q.body)
	if err != nil {
		return nil, fmt.Errorf("error %s: the request cannot be encoded: %w", q.op, err)
	}
	return body, nil
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, q call, body []byte) (reply, error) {
	timeout := q.timeout
	if timeout == 0 {
		timeout = c.cfg.Timeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	r := reply{started: time.Now()}
	request, err := c.request(bounded, q, body)
	if err != nil {
		return r, q.noAnswer(ctx, timeout, err)
	}
	response, err := c.cfg.HTTPClient.Do(request)
	if err != nil {
		return r, q.noAnswer(ctx, timeout, err)
	}
	defer func() { _ = response.Body.Close() }()

	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return r, q.noAnswer(ctx, timeout, err)
	}
	r.status, r.header = response.StatusCode, response.Header
	if len(text) > maxResponse {
		detail := fmt.Sprintf("the answer exceeds %d bytes", maxResponse)
		return r, &Error{Op: q.op, Code: CodeUnexpected, Status: r.status, Detail: detail}
	}
	return r, q.decode(response, text)
}

// request builds and signs the HTTP request. Its errors are [notSentError].
func (c *Client) request(ctx context.Context, q call, body []byte) (*http.Request, error) {
	target := c.endpoint.String() + q.path
	if len(q.query) > 0 {
		target += "?" + strings.ReplaceAll(q.query.Encode(), "+", "%20")
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, notSentError{err}
	}

	r.Header.Set("Accept", "application/json, application/problem+json")
	r.Header.Set("User-Agent", c.cfg.UserAgent)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if trace := c.cfg.Traceparent(ctx); trace != "" {
		r.Header.Set("Traceparent", trace)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}

	if c.signer != nil {
		if err := c.signer.sign(ctx, r, body); err != nil {
			return nil, notSentError{err}
		}
	}
	return r, nil
}

// notSentError is a failure before anything was sent, such as missing credentials. A retry would
// fail in the same way.
type notSentError struct{ error }

// Unwrap returns the cause.
func (e notSentError) Unwrap() error { return e.error }

// noAnswer returns the error of an attempt that received no answer. If ctx has ended, the result
// wraps the error of ctx.
func (q call) noAnswer(ctx context.Context, timeout time.Duration, err error) error {
	var local notSentError
	var wrapped *url.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("error %s: %w", q.op, ctx.Err())
	case errors.As(err, &local):
		return fmt.Errorf("error %s: %w", q.op, local.error)
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Op: q.op, Code: CodeUnreachable, Detail: fmt.Sprintf("no answer within %s", timeout)}
	case errors.As(err, &wrapped):
		err = wrapped.Err // without the URL, because Op already names the operation
	}
	return &Error{
		Op: q.op, Code: CodeUnreachable, Detail: "the API is unreachable", neverSent: neverSent(err), cause: err,
	}
}

// decode decodes the body of an answer into out, or returns the error that the answer describes.
func (q call) decode(response *http.Response, text []byte) error {
	if response.StatusCode/100 != 2 && !q.accepts(response.StatusCode, text) {
		return q.problem(response, text)
	}
	if q.out == nil || response.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(text, q.out); err != nil {
		return &Error{
			Op: q.op, Code: CodeUnexpected, Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"),
			Detail: "the answer is not from Sluice; check the endpoint", cause: err,
		}
	}
	return nil
}
