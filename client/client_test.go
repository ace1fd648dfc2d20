package client_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestNew(t *testing.T) {
	t.Parallel()
	t.Run("refuses an invalid Config", func(t *testing.T) {
		t.Parallel()
		const example = "https://abc123.execute-api.eu-central-1.amazonaws.com"
		for want, cfg := range map[string]client.Config{
			"the endpoint is missing: set it to the URL of the API":         {},
			`the endpoint "localhost:4000" is not a URL such as ` + example: {Endpoint: "localhost:4000"},
			"the endpoint must have no query, fragment or user":             {Endpoint: "https://x.example?a=b"},
			`auth "basic" does not exist: it must be "aws_iam" or "none"`: {
				Endpoint: "https://x.example", Auth: "basic",
			},
			"the timeout must not be negative": {Endpoint: "https://x.example", Timeout: -1},
		} {
			_, err := client.New(cfg)
			require.EqualError(t, err, want)
		}
	})

	t.Run("does not sign by default for an endpoint on this machine", func(t *testing.T) {
		t.Parallel()
		keys := credentials.NewStaticCredentialsProvider("AKID", "secret", "")
		for name, test := range map[string]struct {
			endpoint    string
			auth        client.Auth
			credentials aws.CredentialsProvider
			signed      bool
		}{
			"localhost":                {endpoint: "http://localhost:4000"},
			"IPv4":                     {endpoint: "http://127.0.0.1:4000"},
			"IPv6":                     {endpoint: "http://[::1]:4000"},
			"with credentials":         {endpoint: "http://127.0.0.1:4000", credentials: keys, signed: true},
			"auth none, credentials":   {endpoint: "http://localhost:4000", auth: client.AuthNone, credentials: keys},
			"another machine":          {endpoint: "http://10.0.0.1:4000", credentials: keys, signed: true},
			"localhost as a subdomain": {endpoint: "http://localhost.example", credentials: keys, signed: true},
		} {
			header := firstRequest(t, client.Config{
				Endpoint: test.endpoint, Auth: test.auth, Credentials: test.credentials, Region: "eu-west-3",
			}).Header
			require.Equal(t, test.signed, header.Get("Authorization") != "", name)
		}
	})
}

// firstRequest returns the request that a client with this Config sends.
func firstRequest(t *testing.T, cfg client.Config) *http.Request {
	t.Helper()
	var sent *http.Request
	cfg.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = r
		body := io.NopCloser(strings.NewReader(`{"queues":[]}`))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
	})}
	c, err := client.New(cfg)
	require.NoError(t, err)
	_, err = c.Queues(t.Context())
	require.NoError(t, err)
	return sent
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSigning(t *testing.T) {
	t.Parallel()
	for endpoint, scope := range map[string]string{
		"https://abc.execute-api.ap-south-1.amazonaws.com":         "/ap-south-1/execute-api/aws4_request",
		"https://abc.execute-api.ap-south-1.amazonaws.com/staging": "/ap-south-1/execute-api/aws4_request",
		"https://abc.lambda-url.us-west-2.on.aws":                  "/us-west-2/lambda/aws4_request",
		"https://sluice.example.com":                               "/eu-west-3/execute-api/aws4_request",
	} {
		cfg := client.Config{
			Endpoint: endpoint, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		}
		if strings.Contains(endpoint, "example.com") {
			cfg.Region = "eu-west-3"
		}
		sent := firstRequest(t, cfg)
		require.Contains(t, sent.Header.Get("Authorization"), scope)
		require.True(t, strings.HasSuffix(sent.URL.Path, "/v1/queues"))
		require.Equal(t, strings.Contains(endpoint, "staging"), strings.HasPrefix(sent.URL.Path, "/staging/"))
	}
}

func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 202, `{"id":"a"}`) })
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c := s.client(t, client.Config{Traceparent: func(context.Context) string { return trace }, UserAgent: "shop/2"})
	_, err := c.Queue("q").Push(t.Context(), client.Job{})
	require.NoError(t, err)
	require.Equal(t, trace, s.got()[0].header.Get("Traceparent"))
	require.Equal(t, "shop/2 sluice-go/1", s.got()[0].header.Get("User-Agent"))
}
