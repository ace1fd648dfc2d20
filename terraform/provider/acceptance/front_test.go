package acceptance

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// front is a proxy in front of the gateway that counts requests and injects faults. It keeps the
// caller's Host header, so that signatures stay valid.
type front struct {
	url string

	mu      sync.Mutex
	hooks   map[string]func()
	lost    map[string]bool
	refused map[string]int
	seen    []string
}

// newFront starts a front for the duration of the test.
func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{hooks: make(map[string]func()), lost: make(map[string]bool), refused: make(map[string]int)}
	target, err := url.Parse(system.APIURL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.serve(proxy, w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *front) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	hook, lost, status := f.take(r)
	hook()
	switch {
	case status != 0:
		w.WriteHeader(status)
	case lost: // the gateway handles the request, but the caller gets no response
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		proxy.ServeHTTP(w, r)
	}
}

// take records the request and returns the faults for its method. A hook and a lost response apply
// once. For a request that lists policies, take returns no faults, because the provider sends such
// a request to check its endpoint.
func (f *front) take(r *http.Request) (hook func(), lost bool, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r.Method)
	hook = func() {}
	if strings.HasSuffix(r.URL.Path, "/policies") {
		return hook, false, 0
	}
	if planned, found := f.hooks[r.Method]; found {
		hook = planned
		delete(f.hooks, r.Method)
	}
	lost = f.lost[r.Method]
	delete(f.lost, r.Method)
	return hook, lost, f.refused[r.Method]
}

// before makes the proxy call the function hook once, before it handles the next request with the
// method. Requests that list policies do not count.
func (f *front) before(method string, hook func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks[method] = hook
}

// lose makes the proxy drop the response to the next request with the method. Requests that list
// policies do not count.
func (f *front) lose(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost[method] = true
}

// refuse sets the status with which the proxy answers all requests with the method, except requests
// that list policies. The status 0 makes the proxy forward them again.
func (f *front) refuse(method string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused[method] = status
}

// count returns the number of requests with the method.
func (f *front) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.seen {
		if m == method {
			n++
		}
	}
	return n
}
