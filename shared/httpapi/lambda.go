package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// answerMargin is the time between the deadline of a request and the later deadline of the
// function. It leaves time to answer 504.
const answerMargin = 300 * time.Millisecond

// Lambda adapts h to the events of API Gateway's HTTP APIs, payload format 2.0. See
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html.
func Lambda(h http.Handler) func(context.Context,
	events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerMargin))
			defer cancel()
		}
		r, err := request(ctx, e)
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		w := &response{header: make(http.Header)}
		h.ServeHTTP(w, r)
		return w.event(), nil
	}
}

func request(ctx context.Context, e events.APIGatewayV2HTTPRequest) (*http.Request, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return nil, fmt.Errorf("error decoding the body of the event: %w", err)
		}
	}
	caller := ""
	if a := e.RequestContext.Authorizer; a != nil && a.IAM != nil {
		caller = a.IAM.UserARN
	}
	ctx = WithGateway(ctx, e.RequestContext.RequestID, caller)
	target := &url.URL{Path: e.RawPath, RawQuery: e.RawQueryString}
	if unescaped, err := url.PathUnescape(e.RawPath); err == nil {
		target.Path, target.RawPath = unescaped, e.RawPath
	}
	r := &http.Request{
		Method: e.RequestContext.HTTP.Method, URL: target, Host: e.RequestContext.DomainName,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header, len(e.Headers)),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		RemoteAddr: e.RequestContext.HTTP.SourceIP, RequestURI: target.RequestURI(),
	}
	for name, value := range e.Headers {
		r.Header.Set(name, value)
	}
	return r.WithContext(ctx), nil
}

// response records the status, the headers and the body that a handler writes.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// event converts the response to an event. Every body is UTF-8 text and needs no base64 encoding.
func (w *response) event() events.APIGatewayV2HTTPResponse {
	w.WriteHeader(http.StatusOK)
	headers := make(map[string]string, len(w.header))
	for name, values := range w.header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: w.status, Headers: headers, Body: w.body.String()}
}
