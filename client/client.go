package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Auth says how requests prove who sends them.
type Auth string

// The ways. AuthIAM is the default.
const (
	AuthIAM  Auth = "aws_iam" // AWS Signature Version 4
	AuthNone Auth = "none"    // plain requests, for the local stack
)

// Config describes where Sluice is and how to reach it.
type Config struct {
	// Endpoint is the URL of the API, with its stage when it has one in the path. Required.
	Endpoint string
	// Auth is [AuthIAM] by default.
	Auth Auth
	// Region is the one to sign for when the endpoint's host name does not say it, as AWS's names
	// do. Default: that of the AWS configuration.
	Region string
	// Credentials sign the requests. Default: the chain of the AWS SDK, which is asked at the first
	// request.
	Credentials aws.CredentialsProvider
	// HTTPClient sends the requests. Its RoundTripper must obey the request's context. Default: one
	// with a pool of its own.
	HTTPClient *http.Client
	// Retries is how often a failed call is repeated. Default 3; negative is never.
	//
	// Only what is safe is repeated: reads, and writes that a token, an id or their nature makes
	// idempotent. A limit check, a refund, a forced release, a redrive by number and a conditional
	// change of a policy are repeated only when the request surely never arrived.
	Retries int
	// Timeout is for one attempt, without the time a lock waits. Default 10 s.
	Timeout time.Duration
	// UserAgent is sent before this package's own.
	UserAgent string
	// Traceparent returns the W3C trace context of ctx, or "". It is sent with every request, and
	// travels with a job to its consumer.
	Traceparent func(ctx context.Context) string
}

const (
	defaultRetries = 3
	defaultTimeout = 10 * time.Second
	product        = "sluice-go/1"
)

func (c Config) withDefaults() Config {
	if c.Auth == "" {
		c.Auth = AuthIAM
	}
	if c.HTTPClient == nil {
		c.HTTPClient = newHTTPClient()
	}
	switch {
	case c.Retries == 0:
		c.Retries = defaultRetries
	case c.Retries < 0:
		c.Retries = 0
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	c.UserAgent = strings.TrimSpace(c.UserAgent + " " + product)
	if c.Traceparent == nil {
		c.Traceparent = func(context.Context) string { return "" }
	}
	return c
}

func (c Config) validate() (*url.URL, error) {
	endpoint, err := url.Parse(strings.TrimRight(c.Endpoint, "/"))
	switch {
	case c.Endpoint == "":
		return nil, errors.New("the endpoint is missing: give the URL of the API")
	case err != nil || (endpoint.Scheme != "https" && endpoint.Scheme != "http") || endpoint.Host == "":
		return nil,
			fmt.Errorf("the endpoint %q is not a URL such as https://abc123.execute-api.eu-central-1.amazonaws.com",
				c.Endpoint)
	case endpoint.RawQuery != "" || endpoint.Fragment != "" || endpoint.User != nil:
		return nil, errors.New("the endpoint must have no query, fragment or user")
	case c.Auth != AuthIAM && c.Auth != AuthNone:
		return nil, fmt.Errorf("auth %q is unknown: it must be %q or %q", c.Auth, AuthIAM, AuthNone)
	case c.Timeout < 0:
		return nil, errors.New("the timeout must not be negative")
	}
	return endpoint, nil
}

// newHTTPClient has a pool that a busy process does not exhaust, and follows no redirects: a
// signature is for one URL.
func newHTTPClient() *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		transport := standard.Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 256, 64
		c.Transport = transport
	}
	return c
}

// Client calls Sluice's API. It is safe for concurrent use.
type Client struct {
	cfg      Config
	endpoint *url.URL
	signer   *signer // nil for plain requests

	// background is what abandoned calls leave behind: see [Client.Close].
	background sync.WaitGroup
}

// New makes a Client. It sends nothing yet.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	endpoint, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, endpoint: endpoint}
	if cfg.Auth == AuthIAM {
		c.signer = newSigner(cfg, endpoint.Hostname())
	}
	return c, nil
}

// Close waits until what abandoned calls left behind has been given back, or until ctx ends, and
// closes idle connections.
//
// A call of [Client.Lock] that ends with its context may still be granted the lock at the other
// end; this client then gives it back in the background, within about 20 s. A process that ends
// sooner leaves such a lock to its TTL.
func (c *Client) Close(ctx context.Context) error {
	defer c.cfg.HTTPClient.CloseIdleConnections()
	done := make(chan struct{})
	go func() {
		c.background.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("error closing the client: a lock may be left to its TTL: %w", ctx.Err())
	}
}
