// Package fakeapi is an in-memory fake of the API of Sluice. It implements exclusive locks and
// semaphores, and the parts of jobs and limits that the examples need. Tests can inject faults:
// lost, delayed and refused requests. It supports the clock of testing/synctest.
package fakeapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fault describes how one request fails or is delayed. The zero value means that it succeeds
// without a delay.
type Fault struct {
	Before     time.Duration // delay before the API processes the request
	After      time.Duration // delay before the API answers
	Drop       bool          // the connection is cut before the request arrives
	LoseAnswer bool          // the API processes the request, and the connection is cut before the answer
	Hang       bool          // the request does not arrive, and the connection stays open
	Status     int           // 503: the API answers store_unavailable; any other status comes from the gateway
	SkipWait   bool          // the API ignores wait_ms
}

// Request is a request that the API has processed.
type Request struct {
	Action string // "acquire", "renew", "release", "inspect", "force", "push", "get", "ack", "nack" or "check"
	At     time.Time
	Status int
	Body   map[string]any
	Header http.Header
}

// ErrCut is the error of a request whose connection was cut.
var ErrCut = errors.New("the connection was cut")

// API implements http.RoundTripper.
type API struct {
	mu       sync.Mutex
	fault    func(action string, n int) Fault
	locks    map[string]*lock
	fence    int64
	jobs     map[string]*job
	charged  map[string]int64
	count    map[string]int
	requests []Request
	running  sync.WaitGroup
}

// New returns an API that has no locks, no jobs and no charged limits.
func New() *API {
	return &API{
		locks: make(map[string]*lock), jobs: make(map[string]*job), charged: make(map[string]int64),
		count: make(map[string]int),
	}
}

// Inject sets the function that selects the fault of each further request. The function receives
// the action and the number of the request: 0, 1, 2, … for each action. Nil removes the faults.
func (a *API) Inject(fault func(action string, n int) Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fault
}

// Requests returns the processed requests of an action, in the order of processing. If action is
// "", it returns the requests of every action.
func (a *API) Requests(action string) []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Request
	for _, r := range a.requests {
		if action == "" || r.Action == action {
			out = append(out, r)
		}
	}
	return out
}

// Sent returns the number of requests of an action that were sent, including dropped requests.
func (a *API) Sent(action string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[action]
}

// Wait waits until every request is processed, even if its caller has disconnected.
func (a *API) Wait() { a.running.Wait() }

// RoundTrip implements http.RoundTripper. As in Lambda, a request continues after its caller has
// disconnected.
func (a *API) RoundTrip(r *http.Request) (*http.Response, error) {
	route := routeOf(r)
	fault := a.next(route.action)
	if fault.Drop {
		return nil, ErrCut
	}
	if fault.Hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}

	var body map[string]any
	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &body)
	}
	answered := make(chan *http.Response, 1)
	a.running.Go(func() {
		time.Sleep(fault.Before) //nolint:forbidigo // the latency of the fake
		status, doc := a.carryOut(route, body, fault)
		a.record(Request{Action: route.action, At: time.Now(), Status: status, Body: body, Header: r.Header})
		time.Sleep(fault.After)           //nolint:forbidigo // the latency of the fake
		answered <- response(status, doc) //nolint:bodyclose // the client closes it
	})

	select {
	case out := <-answered:
		if fault.LoseAnswer {
			return nil, ErrCut
		}
		return out, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// route is the parsed path of a request: /v1/kind/name/action, or /v1/queues/name/jobs/id/action.
type route struct {
	kind, name, id, action string
}

func routeOf(r *http.Request) route {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	out := route{kind: segments[1], name: segments[2]}
	rest := segments[3:]
	if out.kind == "queues" && len(rest) > 1 {
		out.id, rest = rest[1], rest[2:]
	}

	switch {
	case out.kind == "queues" && len(rest) > 0 && rest[0] == "jobs":
		out.action = "push"
	case len(rest) > 0:
		out.action = rest[0]
	case out.kind == "queues":
		out.action = "get"
	case r.Method == http.MethodDelete:
		out.action = "force"
	default:
		out.action = "inspect"
	}
	return out
}

func (a *API) next(action string) Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.count[action]
	a.count[action]++
	if a.fault == nil {
		return Fault{}
	}
	return a.fault(action, n)
}

func (a *API) record(r Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
}

func (a *API) carryOut(r route, body map[string]any, fault Fault) (int, map[string]any) {
	switch {
	case fault.Status == http.StatusServiceUnavailable:
		return refuse(fault.Status, "store_unavailable", map[string]any{"retry_after_ms": 1000})
	case fault.Status != 0:
		return fault.Status, map[string]any{"message": http.StatusText(fault.Status)}
	}

	name := r.kind + "/" + r.name
	token, _ := body["token"].(string)
	switch r.action {
	case "acquire":
		return a.acquire(name, token, body, fault.SkipWait)
	case "renew":
		return a.renew(name, token, body)
	case "release":
		return a.release(name, token)
	case "force":
		return http.StatusOK, map[string]any{"released": a.Force(name)}
	case "push":
		return a.push(r.name, body)
	case "get":
		return a.job(r.id)
	case "ack", "nack":
		return a.finish(r.id, r.action == "ack")
	case "check":
		return a.check(r.name, body)
	default:
		return a.inspect(name)
	}
}

func response(status int, doc map[string]any) *http.Response {
	text, _ := json.Marshal(doc)
	mediaType := "application/json"
	if doc["code"] != nil {
		mediaType = "application/problem+json"
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {mediaType}, "X-Request-Id": {"req-1"}},
		Body: io.NopCloser(bytes.NewReader(text)),
	}
}

// refuse returns the status and a problem document with the given members.
func refuse(status int, code string, members map[string]any) (int, map[string]any) {
	doc := map[string]any{
		"code": code, "status": status, "title": code, "detail": code, "type": "about:blank", "instance": "req-1",
	}
	maps.Copy(doc, members)
	return status, doc
}
