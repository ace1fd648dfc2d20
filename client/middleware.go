package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// LimitConfig describes a middleware that limits requests.
type LimitConfig struct {
	// Policy is the one to charge. Required.
	Policy string
	// Key is whom to charge; a request whose key is "" is not limited. A key of more than 512
	// bytes, or that is no UTF-8, is charged under its hash. Default: the address of the peer,
	// which behind a proxy is the proxy's.
	Key func(*http.Request) string
	// Cost is how much to charge. Default 1.
	Cost func(*http.Request) int64
	// Timeout is how long a request may wait for its decision. Default 500 ms.
	Timeout time.Duration
	// FailClosed answers 503 when there is no decision. By default such a request passes. What
	// happens while only Redis is away is the policy's to say, with on_unavailable.
	FailClosed bool
	// OnError is told why there was no decision. It must not block.
	OnError func(*http.Request, error)
	// Denied answers a denied request; the headers are set already. Default: 429 with a problem
	// document.
	Denied func(http.ResponseWriter, *http.Request, Decision)
}

const defaultLimitTimeout = 500 * time.Millisecond

func (cfg LimitConfig) withDefaults() LimitConfig {
	if cfg.Key == nil {
		cfg.Key = peer
	}
	if cfg.Cost == nil {
		cfg.Cost = func(*http.Request) int64 { return 1 }
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultLimitTimeout
	}
	if cfg.OnError == nil {
		cfg.OnError = func(*http.Request, error) {}
	}
	if cfg.Denied == nil {
		cfg.Denied = writeDenied
	}
	return cfg
}

// Middleware limits the requests to a handler. Every answer that was decided on carries RateLimit
// and RateLimit-Policy, and a denial Retry-After.
func (c *Client) Middleware(cfg LimitConfig) (func(http.Handler) http.Handler, error) {
	cfg = cfg.withDefaults()
	if err := checkName("making a middleware", "policy", cfg.Policy); err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return &limited{client: c, cfg: cfg, next: next}
	}, nil
}

// limited is a handler behind a limit.
type limited struct {
	client *Client
	cfg    LimitConfig
	next   http.Handler
}

func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := l.cfg.Key(r)
	if key == "" {
		l.next.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), l.cfg.Timeout)
	d, err := l.client.Check(ctx, Check{Policy: l.cfg.Policy, Key: fitting(key), Cost: l.cfg.Cost(r)})
	cancel()
	switch {
	case err != nil:
		l.cfg.OnError(r, err)
		if l.cfg.FailClosed {
			writeUndecided(w)
			return
		}
		l.next.ServeHTTP(w, r)
	case d.Allowed:
		d.setHeaders(w.Header())
		l.next.ServeHTTP(w, r)
	default:
		d.setHeaders(w.Header())
		l.cfg.Denied(w, r, d)
	}
}

// peer is the address of whoever sent the request. X-Forwarded-For is not believed: anybody can
// send it.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// fitting makes a key that the API takes of any text, so that nobody escapes the limit by a strange
// key.
func fitting(key string) string {
	if len(key) <= maxKey && utf8.ValidString(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (d Decision) setHeaders(h http.Header) {
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		if value := d.headers.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	if wait, ever := d.RetryAfter(); !d.Allowed && ever {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
}

// writeDenied answers with the problem type that draft-ietf-httpapi-ratelimit-headers registers.
func writeDenied(w http.ResponseWriter, _ *http.Request, d Decision) {
	doc := map[string]any{
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "The quota is exceeded",
		"status": http.StatusTooManyRequests, "detail": "too many requests", "retry_after_ms": d.RetryAfterMS,
	}
	if d.Violated != "" {
		doc["violated-policies"] = []string{d.Violated}
	}
	writeProblem(w, http.StatusTooManyRequests, doc)
}

func writeUndecided(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeProblem(w, http.StatusServiceUnavailable, map[string]any{
		"type": "about:blank", "title": "Service Unavailable", "status": http.StatusServiceUnavailable,
		"detail": "the rate limit cannot be checked for now",
	})
}

func writeProblem(w http.ResponseWriter, status int, doc map[string]any) {
	text, err := json.Marshal(doc)
	if err != nil {
		text = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
