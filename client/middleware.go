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

// LimitConfig configures [Client.Middleware]. Only Policy is required.
type LimitConfig struct {
	// Policy is the name of the policy to charge.
	Policy string
	// Key returns the key to charge. A request whose key is "" is not limited. A key that exceeds
	// 512 bytes or is not valid UTF-8 is replaced with its hash. Defaults to the IP address of the
	// peer, which behind a proxy is the address of the proxy.
	Key func(*http.Request) string
	// Cost returns the number of units to charge. Defaults to 1.
	Cost func(*http.Request) int64
	// Timeout is the maximum wait for a decision of the API. Defaults to 500 ms.
	Timeout time.Duration
	// If FailClosed is set and the API returns no decision, the middleware answers 503. By default,
	// the request proceeds. If only Redis is unavailable, the API still decides, according to the
	// policy's OnUnavailable.
	FailClosed bool
	// OnError is called with the error if the API returns no decision. It must not block.
	OnError func(*http.Request, error)
	// Denied writes the answer to a denied request. The middleware has already set the headers of
	// the decision. Defaults to 429 with a problem document.
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

// Middleware returns a function that wraps a handler and limits its requests. The middleware sets
// the headers RateLimit and RateLimit-Policy, and on the answer to a denied request also
// Retry-After. The error describes an invalid LimitConfig.
func (c *Client) Middleware(cfg LimitConfig) (func(http.Handler) http.Handler, error) {
	cfg = cfg.withDefaults()
	if err := checkName("creating a middleware", "policy", cfg.Policy); err != nil {
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

// ServeHTTP implements http.Handler.
func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := l.cfg.Key(r)
	if key == "" {
		l.next.ServeHTTP(w, r)
		return
	}

	ctx, cancel := context.WithTimeout(r.Context(), l.cfg.Timeout)
	d, err := l.client.Check(ctx, Check{Policy: l.cfg.Policy, Key: validKey(key), Cost: l.cfg.Cost(r)})
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

// peer returns the IP address that sent the request. It ignores X-Forwarded-For, which any client
// can set.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// validKey returns key, or its hash if the API would refuse the key. Without the hash, an invalid
// key would evade the limit.
func validKey(key string) string {
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
	if !d.Allowed && d.RetryAfter != nil {
		seconds := (*d.RetryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
}

// writeDenied answers with the problem type that draft-ietf-httpapi-ratelimit-headers registers.
func writeDenied(w http.ResponseWriter, _ *http.Request, d Decision) {
	doc := map[string]any{
		"type":           "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":          "Quota exceeded",
		"status":         http.StatusTooManyRequests,
		"detail":         "too many requests",
		"retry_after_ms": (*millis)(d.RetryAfter),
	}
	if d.Violated != "" {
		doc["violated-policies"] = []string{d.Violated}
	}
	writeProblem(w, http.StatusTooManyRequests, doc)
}

func writeUndecided(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeProblem(w, http.StatusServiceUnavailable, map[string]any{
		"type":   "about:blank",
		"title":  "Service Unavailable",
		"status": http.StatusServiceUnavailable,
		"detail": "the rate limit cannot be checked at present",
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
