// Package localaws runs kumo, a fake of SQS, DynamoDB and the Lambda Runtime API, in this process.
//
// All kumo servers in a process share their state, so names must be unique in the process. kumo
// validates little, and its FIFO queues lose the message order after a redelivery.
package localaws

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/sivchari/kumo"
)

// Region is the region of the local AWS.
const Region = "eu-central-1"

// Server is a running local AWS.
type Server struct {
	// Endpoint is the base URL.
	Endpoint string

	kumo   *kumo.Server
	server *http.Server
}

// newServer guards kumo.NewServer, which changes global state without a lock.
var newServer sync.Mutex //nolint:gochecknoglobals // it guards global state

// Start starts a local AWS at addr, host:port. Port 0 selects a free port.
func Start(addr string) (*Server, error) {
	listener, err := net.Listen("tcp", addr) //nolint:noctx // a loopback listen does not wait
	if err != nil {
		return nil, fmt.Errorf("error listening for AWS calls: %w", err)
	}
	newServer.Lock()
	backend := kumo.NewServer()
	newServer.Unlock()
	target, err := url.Parse(backend.URL)
	if err != nil {
		return nil, fmt.Errorf("error reading kumo's address: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport: &http.Transport{MaxIdleConnsPerHost: 512},
		// Removes kumo's checksum: it is always 0, and the SDK would log a warning for each
		// response.
		ModifyResponse: func(r *http.Response) error { r.Header.Del("X-Amz-Crc32"); return nil },
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	c := &Server{
		Endpoint: "http://" + listener.Addr().String(), kumo: backend,
		server: &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute},
	}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// Host returns the endpoint without its scheme, for AWS_LAMBDA_RUNTIME_API.
func (c *Server) Host() string { return c.Endpoint[len("http://"):] }

// Config returns an SDK configuration with arbitrary credentials.
func (c *Server) Config() aws.Config { return Config(c.Endpoint) }

// Config returns an SDK configuration for an endpoint, with arbitrary credentials.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}
}

// Env returns the configuration that [Config] returns, as environment variables, for a process that
// loads the SDK's default configuration.
func Env(endpoint string) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=" + Region, "AWS_ACCESS_KEY_ID=local",
		"AWS_SECRET_ACCESS_KEY=local",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// Close stops the server and aborts the calls in flight.
func (c *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = c.server.Shutdown(ctx)
	err := c.server.Close()
	done := make(chan struct{})
	go func() { // kumo waits for the end of long polls, which can take longer than 2 s
		c.kumo.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
	return err
}
