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
// once. take returns no faults for a listing, because Terraform configures the provider with it.
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

// before calls hook before the next request with the method, except listings.
func (f *front) before(method string, hook func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks[method] = hook
}

// lose drops the response to the next request with the method, except listings.
func (f *front) lose(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost[method] = true
}

// refuse responds with the status to every request with the method, except listings. Status 0 ends
// the refusals.
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
