// Package faultproxy stands in front of the local AWS and makes SQS fail as it does at AWS, now and
// then: whole batches, single entries, throttling, and answers that are lost after the messages
// were accepted. What it does follows a seed.
package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Faults are the shares of SendMessageBatch calls that fail in each way; together at most 1.
type Faults struct {
	// Error answers 500, and nothing was accepted.
	Error float64
	// Throttled answers that there are too many requests.
	Throttled float64
	// Partial accepts some entries and fails the others.
	Partial float64
	// Lost accepts everything, and then the connection breaks.
	Lost float64
}

// Proxy is a running one.
type Proxy struct {
	// URL is where it listens.
	URL string

	server *http.Server

	mu     sync.Mutex
	random *rand.Rand
	target *httputil.ReverseProxy
	base   string
	faults Faults
	counts map[string]int
	lost   map[string]int // job id → how often its acceptance was not told
}

// Start runs a proxy without a target and without faults.
func Start(seed uint64) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
	if err != nil {
		return nil, fmt.Errorf("error listening: %w", err)
	}
	p := &Proxy{
		URL: "http://" + listener.Addr().String(), random: rand.New(rand.NewPCG(seed, seed)), counts: make(map[string]int), lost: make(map[string]int), //nolint:gosec // faults follow a seed
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Close ends it.
func (p *Proxy) Close() error { return p.server.Close() }

// Target says where calls go.
func (p *Proxy) Target(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("error reading the target's address: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = endpoint
	p.target = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(u); r.Out.Host = r.In.Host },
		Transport:    &http.Transport{MaxIdleConnsPerHost: 256},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return nil
}

// Set changes the faults.
func (p *Proxy) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Counts are how often each fault happened: error, throttled, partial, lost.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Lost is how often the acceptance of a job's message was not told.
func (p *Proxy) Lost(jobID string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost[jobID]
}

// entry is a message of a batch, as far as the proxy looks at it.
type entry struct {
	ID         string `json:"Id"`
	Attributes map[string]struct {
		StringValue string `json:"StringValue"`
	} `json:"MessageAttributes"`
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	if target == nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" {
		target.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.sendBatch(w, r, target, body)
}

func (p *Proxy) sendBatch(w http.ResponseWriter, r *http.Request, target http.Handler, body []byte) {
	forward := func(w http.ResponseWriter, body []byte) {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		target.ServeHTTP(w, r)
	}
	switch fault := p.draw(); fault {
	case "error":
		refuse(w, http.StatusInternalServerError, "InternalError")
	case "throttled":
		refuse(w, http.StatusBadRequest, "RequestThrottled")
	case "lost":
		answer := &recorder{header: make(http.Header)}
		forward(answer, body)
		p.noteLost(body)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	case "partial":
		p.partial(w, body, forward)
	default:
		forward(w, body)
	}
}

// draw picks a fault, or none.
func (p *Proxy) draw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.random.Float64()
	for _, f := range []struct {
		name  string
		share float64
	}{{"error", p.faults.Error}, {"throttled", p.faults.Throttled}, {"partial", p.faults.Partial},
		{"lost", p.faults.Lost}} {
		if x < f.share {
			p.counts[f.name]++
			return f.name
		}
		x -= f.share
	}
	return ""
}

func (p *Proxy) noteLost(body []byte) {
	var batch struct{ Entries []entry }
	if json.Unmarshal(body, &batch) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range batch.Entries {
		p.lost[e.Attributes["sluice-job-id"].StringValue]++
	}
}

// partial forwards every other entry, and says of the rest that it failed.
func (p *Proxy) partial(w http.ResponseWriter, body []byte, forward func(http.ResponseWriter, []byte)) {
	var batch map[string]json.RawMessage
	var entries []json.RawMessage
	if json.Unmarshal(body, &batch) != nil || json.Unmarshal(batch["Entries"], &entries) != nil {
		forward(w, body)
		return
	}
	var kept []json.RawMessage
	var failed []map[string]any
	for i, raw := range entries {
		if i%2 == 0 {
			kept = append(kept, raw)
			continue
		}
		var e entry
		_ = json.Unmarshal(raw, &e)
		failed = append(failed, map[string]any{"Id": e.ID, "Code": "InternalError", "SenderFault": false,
			"Message": "a fault of the proxy"})
	}
	batch["Entries"], _ = json.Marshal(kept)
	fewer, _ := json.Marshal(batch)
	answer := &recorder{header: make(http.Header)}
	forward(answer, fewer)
	var out map[string]any
	if json.Unmarshal(answer.body.Bytes(), &out) != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	out["Failed"] = failed
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(out)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-Query-Error", code+";Sender")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"a fault of the proxy"}`, code)
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
