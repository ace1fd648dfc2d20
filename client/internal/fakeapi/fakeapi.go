// Package fakeapi is Sluice's lock API in memory, for tests that need an answer lost, late or
// refused at one certain moment, or the clock of testing/synctest. What the real API can show is
// tested against the local stack.
package fakeapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fault is what happens to one request.
type Fault struct {
	Before time.Duration // passes before it is carried out
	After  time.Duration // passes between that and its answer
	Drop   bool          // it never arrives
	Lose   bool          // it is carried out, and its answer is lost
	Hang   bool          // it never arrives, and nobody says so
	Status int           // it is refused with this status: 503 as store_unavailable, others by the gateway
	Hurry  bool          // it does not wait, whatever wait_ms it has
}

// Request is a request as the API has carried it out.
type Request struct {
	Action string // acquire, renew, release, inspect, force
	At     time.Time
	Status int
	Body   map[string]any
	Header http.Header
}

// ErrCut is what a dropped or lost request ends with.
var ErrCut = errors.New("the connection was cut")

type holder struct {
	fence   int64
	expires time.Time
	owner   string
}

type entry struct {
	holders map[string]*holder
	forced  bool
}

// API is an http.RoundTripper.
type API struct {
	mu       sync.Mutex
	decide   func(action string, n int) Fault
	locks    map[string]*entry
	fence    int64
	count    map[string]int
	requests []Request
	running  sync.WaitGroup
}

// New makes an API that holds no lock.
func New() *API { return &API{locks: make(map[string]*entry), count: make(map[string]int)} }

// RoundTrip implements http.RoundTripper. A request goes on when its caller has gone, as at Lambda.
func (a *API) RoundTrip(r *http.Request) (*http.Response, error) {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // v1, kind, name, action
	action := map[string]string{http.MethodGet: "inspect", http.MethodDelete: "force"}[r.Method]
	if len(segments) == 4 {
		action = segments[3]
	}
	fault := a.next(action)
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
		time.Sleep(fault.Before) //nolint:forbidigo // the fake's latency
		status, doc := a.carryOut(action, segments[1]+"/"+segments[2], body, fault)
		a.note(Request{Action: action, At: time.Now(), Status: status, Body: body, Header: r.Header})
		time.Sleep(fault.After)           //nolint:forbidigo // the fake's latency
		answered <- response(status, doc) //nolint:bodyclose // the client closes it
	})
	select {
	case out := <-answered:
		if fault.Lose {
			return nil, ErrCut
		}
		return out, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (a *API) next(action string) Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.count[action]
	a.count[action]++
	if a.decide == nil {
		return Fault{}
	}
	return a.decide(action, n)
}

// Break decides from now on what happens to request number n, from 0, of an action.
func (a *API) Break(decide func(action string, n int) Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decide = decide
}

func (a *API) note(r Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
}

// Requests are those that were carried out, in that order; of one action unless that is "".
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

// Asked is how many requests of an action were sent, whatever became of them.
func (a *API) Asked(action string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[action]
}

// Wait waits for the requests whose callers have gone.
func (a *API) Wait() { a.running.Wait() }

func (a *API) carryOut(action, name string, body map[string]any, fault Fault) (int, map[string]any) {
	switch {
	case fault.Status == http.StatusServiceUnavailable:
		return refuse(fault.Status, "store_unavailable", "retry_after_ms", 1000)
	case fault.Status != 0:
		return fault.Status, map[string]any{"message": http.StatusText(fault.Status)}
	}
	token, _ := body["token"].(string)
	switch action {
	case "acquire":
		return a.acquire(name, token, body, fault.Hurry)
	case "renew":
		return a.renew(name, token, body)
	case "release":
		return a.release(name, token)
	case "force":
		return http.StatusOK, map[string]any{"released": a.Force(name)}
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

func refuse(status int, code string, members ...any) (int, map[string]any) {
	doc := map[string]any{"code": code, "status": status, "title": code, "detail": code, "type": "about:blank",
		"instance": "req-1"}
	for i := 0; i+1 < len(members); i += 2 {
		doc[members[i].(string)] = members[i+1] //nolint:forcetypeassert // names are given as such
	}
	return status, doc
}
