// Package faultproxy is a proxy in front of the local AWS that injects SQS failures: errors,
// throttling, partial batch failures, and responses that are lost after SQS accepted the messages.
// A seed makes the failures reproducible.
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

// Faults holds the probability of each failure of a SendMessageBatch call, 0 to 1. The sum must be
// at most 1.
type Faults struct {
	// Error is the probability of InternalError (500). SQS receives no message.
	Error float64
	// Throttled is the probability of RequestThrottled (400). SQS receives no message.
	Throttled float64
	// Partial is the probability of a partial failure: SQS accepts every other entry, and the rest
	// fail.
	Partial float64
	// Lost is the probability of a lost response: SQS accepts all entries, then the proxy closes
	// the connection.
	Lost float64
}

// Proxy is a running proxy.
type Proxy struct {
	// URL is the URL of the proxy.
	URL string

	server *http.Server

	mu     sync.Mutex
	random *rand.Rand
	target *httputil.ReverseProxy
	faults Faults
	counts map[string]int
	lost   map[string]int // job ID → number of lost responses
}

// Start starts a proxy. It answers 502 until [Proxy.Target] is called, and injects no faults until
// [Proxy.Set] is called.
func Start(seed uint64) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
	if err != nil {
		return nil, fmt.Errorf("error listening: %w", err)
	}
	p := &Proxy{
		URL:    "http://" + listener.Addr().String(),
		random: rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // the faults must be reproducible
		counts: make(map[string]int),
		lost:   make(map[string]int),
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Close stops the proxy.
func (p *Proxy) Close() error { return p.server.Close() }

// Target sets the endpoint to which the proxy forwards calls.
func (p *Proxy) Target(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("error reading the target's address: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
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

// Counts returns the number of injected faults by name: error, throttled, partial, lost.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Lost returns the number of lost responses to batches that contained the job.
func (p *Proxy) Lost(jobID string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost[jobID]
}

// entry holds the fields of a batch entry that the proxy reads.
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

// sendBatch forwards a batch or injects a random fault.
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
		p.recordLost(body)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	case "partial":
		p.partial(w, body, forward)
	default:
		forward(w, body)
	}
}

// draw selects a random fault, counts it and returns its name. It returns "" if it selects no
// fault.
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

// recordLost counts a lost response for each job of a batch.
func (p *Proxy) recordLost(body []byte) {
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

// partial forwards every other entry and reports the rest as failed.
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
			"Message": "injected by the proxy"})
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
	_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"injected by the proxy"}`, code)
}

// recorder is an [http.ResponseWriter] that keeps the body in memory.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
