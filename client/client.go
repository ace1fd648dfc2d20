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

// Config configures a [Client]. Only Endpoint is required.
type Config struct {
	// Endpoint is the URL of the API. It includes the stage of API Gateway if the paths of the API
	// begin with a stage.
	Endpoint string
	// Auth defaults to [AuthIAM], or to [AuthNone] if the endpoint is on this machine and
	// Credentials is nil.
	Auth Auth
	// Region is the AWS region to sign for. The region in the endpoint's host name takes
	// precedence. Defaults to the region of the AWS configuration.
	Region string
	// Credentials sign the requests. Defaults to the credential chain of the AWS SDK, which the
	// client loads at the first request.
	Credentials aws.CredentialsProvider
	// HTTPClient sends the requests. Its RoundTripper must stop when the context of the request
	// ends. Defaults to a client with its own connection pool.
	HTTPClient *http.Client
	// Retries is the maximum number of retries of a failed call. Zero means 3; a negative number
	// disables retries.
	//
	// The client retries reads and idempotent writes. It retries a limit check, a refund, a forced
	// release, a redrive without IDs and a conditional change of a policy only if the request
	// certainly never reached the API.
	Retries int
	// Timeout is the time limit of one attempt, not counting the wait for a lock at the API.
	// Defaults to 10 s.
	Timeout time.Duration
	// UserAgent is written before this package's product name in the User-Agent header.
	UserAgent string
	// Traceparent returns the W3C trace context of ctx, or "" if there is none. The client sends it
	// with every request. The consumer of a pushed job receives it too.
	Traceparent func(ctx context.Context) string
}

const (
	defaultRetries = 3
	defaultTimeout = 10 * time.Second
	product        = "sluice-go/1"
)

// Client calls the API of a Sluice deployment. It is safe for concurrent use.
type Client struct {
	cfg      Config
	endpoint *url.URL
	signer   *signer // nil if requests are not signed

	// background tracks the goroutines that may outlive their call; see [Client.Close].
	background sync.WaitGroup
}

// New returns a Client. It sends no request and does not read the AWS configuration. The error
// describes an invalid Config.
func New(cfg Config) (*Client, error) {
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}

	cfg = cfg.withDefaults(endpoint.Hostname())
	if err := cfg.validate(); err != nil {
		return nil, err
	}

	c := &Client{cfg: cfg, endpoint: endpoint}
	if cfg.Auth == AuthIAM {
		c.signer = newSigner(cfg, endpoint.Hostname())
	}
	return c, nil
}

func parseEndpoint(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("the endpoint is missing: set it to the URL of the API")
	}
	endpoint, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || (endpoint.Scheme != "https" && endpoint.Scheme != "http") || endpoint.Host == "" {
		const example = "https://abc123.execute-api.eu-central-1.amazonaws.com"
		return nil, fmt.Errorf("the endpoint %q is not a URL such as %s", text, example)
	}
	if endpoint.RawQuery != "" || endpoint.Fragment != "" || endpoint.User != nil {
		return nil, errors.New("the endpoint must have no query, fragment or user")
	}
	return endpoint, nil
}

func (c Config) withDefaults(host string) Config {
	if c.Auth == "" {
		c.Auth = defaultAuth(host, c.Credentials != nil)
	}
	if c.HTTPClient == nil {
		c.HTTPClient = newHTTPClient()
	}
	if c.Retries == 0 {
		c.Retries = defaultRetries
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Traceparent == nil {
		c.Traceparent = func(context.Context) string { return "" }
	}
	c.UserAgent = strings.TrimSpace(c.UserAgent + " " + product)
	return c
}

func (c Config) validate() error {
	if c.Auth != AuthIAM && c.Auth != AuthNone {
		return fmt.Errorf("auth %q does not exist: it must be %q or %q", c.Auth, AuthIAM, AuthNone)
	}
	if c.Timeout < 0 {
		return errors.New("the timeout must not be negative")
	}
	return nil
}

// newHTTPClient returns a client whose connection pool is large enough for a busy process. The
// client follows no redirects, because a signature is valid for one URL only.
func newHTTPClient() *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		transport := standard.Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 256, 64
		c.Transport = transport
	}
	return c
}

// Close waits until the background cleanup of canceled calls has ended, or until ctx ends. Then it
// closes idle connections.
//
// If the context of [Client.Lock] ends during the call, the API may still grant the lock. The
// client then releases the lock in the background, usually within 20 s. If the process exits before
// the release, the lock is held until its TTL has passed.
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
		return fmt.Errorf("error closing the client: a lock may be held until its TTL has passed: %w", ctx.Err())
	}
}
