// Package localaws is the AWS of the local stack: kumo, in this process, behind one address. It serves
// SQS, DynamoDB and Lambda's Runtime API.
//
// kumo is a fake, since none of these runs on a laptop. Its state belongs to the process, so names
// must be unique in it; it validates little; its FIFO queues do not keep order after a redelivery.
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

// Region is the region that the local AWS is in.
const Region = "eu-central-1"

// Server is a running local AWS.
type Server struct {
	// Endpoint is its base URL.
	Endpoint string

	kumo   *kumo.Server
	server *http.Server
}

// making guards kumo while it makes a server: all of a process share their services, and it wires
// these without a lock.
var making sync.Mutex //nolint:gochecknoglobals // what it guards is global too

// Start serves at addr, host:port; port 0 takes a free one.
func Start(addr string) (*Server, error) {
	listener, err := net.Listen("tcp", addr) //nolint:noctx // a loopback listen does not wait
	if err != nil {
		return nil, fmt.Errorf("error listening for AWS calls: %w", err)
	}
	making.Lock()
	backend := kumo.NewServer()
	making.Unlock()
	target, err := url.Parse(backend.URL)
	if err != nil {
		return nil, fmt.Errorf("error reading kumo's address: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport: &http.Transport{MaxIdleConnsPerHost: 512},
		// kumo's checksum is always 0, and the SDK would complain of it each time.
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

// Host is the endpoint without its scheme, for AWS_LAMBDA_RUNTIME_API.
func (c *Server) Host() string { return c.Endpoint[len("http://"):] }

// Config is an SDK configuration for it, with credentials that mean nothing.
func (c *Server) Config() aws.Config { return Config(c.Endpoint) }

// Config is an SDK configuration for any endpoint of the local stack.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}
}

// Env is the same for a process that loads the SDK's default configuration.
func Env(endpoint string) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=" + Region, "AWS_ACCESS_KEY_ID=local",
		"AWS_SECRET_ACCESS_KEY=local",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// Close ends it. Calls that are still waiting are cut off.
func (c *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = c.server.Shutdown(ctx)
	err := c.server.Close()
	done := make(chan struct{})
	go func() { // httptest waits for long polls to end; the process need not
		c.kumo.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
	return err
}
