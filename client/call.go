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

// maxResponse bounds a response body, in bytes. Lambda's own limit is 6 MiB.
const maxResponse = 16 << 20

// call is one operation of the API.
type call struct {
	op     string // what it does, for errors
	method string
	path   string // escaped
	query  url.Values
	header map[string]string
	body   any // becomes JSON; nil is no body
	out    any // the answer's JSON; nil drops it
	repeat repeat
	// timeout is for one attempt; zero is the client's.
	timeout time.Duration
	// statuses are those beside 2xx whose body is decoded into out.
	statuses []int
}

// reply is what is known of an answered call beside its body.
type reply struct {
	status int
	header http.Header
	// started is when the attempt that was answered began.
	started time.Time
	// uncertain says that an earlier attempt may have been carried out.
	uncertain bool
}

// pathTo joins segments to a path, escaped as the AWS SDK does it: whatever is not an unreserved
// character of RFC 3986.
func pathTo(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + strings.ReplaceAll(url.PathEscape(s), ":", "%3A"))
	}
	return b.String()
}

// do carries a call out, and repeats it as far as its policy and the client's Retries allow.
//
// The error is an [*Error], or wraps ctx's own. The reply is of use with an error, too.
func (c *Client) do(ctx context.Context, q call) (reply, error) {
	body, err := q.encode()
	if err != nil {
		return reply{}, err
	}
	var r reply
	for attempt := 0; ; attempt++ {
		answer, err := c.attempt(ctx, q, body)
		answer.uncertain = r.uncertain
		r = answer
		if err == nil {
			return r, nil
		}
		var e *Error
		if !errors.As(err, &e) {
			r.uncertain = r.uncertain || ctx.Err() != nil
			return r, err
		}
		r.uncertain = r.uncertain || e.uncertain()
		if attempt >= c.cfg.Retries || !q.repeat.allows(e) || !pause(ctx, backoff(attempt, e.RetryAfter)) {
			return r, err
		}
	}
}

// once carries a call out without repeating it, for callers that have a loop of their own.
func (c *Client) once(ctx context.Context, q call) (reply, error) {
	body, err := q.encode()
	if err != nil {
		return reply{}, err
	}
	r, err := c.attempt(ctx, q, body)
	var e *Error
	r.uncertain = err != nil && (ctx.Err() != nil || errors.As(err, &e) && e.uncertain())
	return r, err
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

// encodeJSON is json.Marshal that leaves <, > and & as they are: a payload stays as short as it is.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, q call, body []byte) (reply, error) {
	timeout := q.timeout
	if timeout == 0 {
		timeout = c.cfg.Timeout
	}
	r := reply{started: time.Now()}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := c.request(bounded, q, body)
	if err != nil {
		return r, q.failed(ctx, timeout, err)
	}
	response, err := c.cfg.HTTPClient.Do(request)
	if err != nil {
		return r, q.failed(ctx, timeout, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return r, q.failed(ctx, timeout, err)
	}
	r.status, r.header = response.StatusCode, response.Header
	if len(text) > maxResponse {
		return r, &Error{Op: q.op, Code: CodeUnexpected, Status: r.status,
			Detail: fmt.Sprintf("the answer is over %d bytes", maxResponse)}
	}
	return r, q.decode(response, text)
}

// notSentError is a failure before anything was sent, which no repetition helps: there are no
// credentials, for example.
type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

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

// failed makes the error of an attempt that got no answer. The caller's own context comes first.
func (q call) failed(ctx context.Context, timeout time.Duration, err error) error {
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
		err = wrapped.Err // without the URL: the operation is named already
	}
	return &Error{Op: q.op, Code: CodeUnreachable, Detail: "the API cannot be reached", unsent: neverSent(err),
		cause: err}
}

// decode reads an answer's body into out, or into an error.
func (q call) decode(response *http.Response, text []byte) error {
	if response.StatusCode/100 != 2 && !contains(q.statuses, response, text) {
		return q.problem(response, text)
	}
	if q.out == nil || response.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(text, q.out); err != nil {
		return &Error{
			Op: q.op, Code: CodeUnexpected, Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"),
			Detail: "the answer is not the API's: is the endpoint right?", cause: err,
		}
	}
	return nil
}
