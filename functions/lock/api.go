package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// backend is where locks are kept.
type backend interface {
	Acquire(ctx context.Context, q lock.Request) (lock.Lease, error)
	Renew(ctx context.Context, kind lock.Kind, name, token string, ttl time.Duration) (lock.Lease, error)
	Release(ctx context.Context, kind lock.Kind, name, token string) (time.Duration, error)
	Force(ctx context.Context, kind lock.Kind, name string) (int64, error)
	Inspect(ctx context.Context, kind lock.Kind, name string) (lock.State, error)
}

// backends are those that the deployment has; redis always.
type backends struct{ redis, quorum, strong backend }

type api struct {
	backends backends
	log      *slog.Logger
	metrics  *telemetry.Metrics
}

func newAPI(b backends, log *slog.Logger, metrics *telemetry.Metrics) *httpapi.API {
	a := &api{backends: b, log: log, metrics: metrics}
	router := httpapi.New(log, metrics)
	for path, kind := range map[string]lock.Kind{"/v1/locks/{name}": lock.Lock,
		"/v1/semaphores/{name}": lock.Semaphore} {
		router.Handle("POST "+path+"/acquire", a.acquire(kind))
		router.Handle("POST "+path+"/renew", a.renew(kind))
		router.Handle("POST "+path+"/release", a.release(kind))
		router.Handle("GET "+path, a.inspect(kind))
		router.Handle("DELETE "+path, a.force(kind))
	}
	return router
}

// choose finds the backend that a consistency names. Semaphores are on redis only.
func (a *api) choose(kind lock.Kind, consistency string) (backend, error) {
	switch {
	case consistency == "" || consistency == "redis":
		return a.backends.redis, nil
	case consistency != "quorum" && consistency != "strong":
		return nil, fault.Invalid("consistency", `must be "redis", "quorum" or "strong"`)
	case kind == lock.Semaphore:
		return nil, fault.Invalid("consistency", `must be "redis": semaphores know no other`)
	case consistency == "quorum" && a.backends.quorum != nil:
		return a.backends.quorum, nil
	case consistency == "strong" && a.backends.strong != nil:
		return a.backends.strong, nil
	case consistency == "quorum":
		return nil, fault.Invalid("consistency", "this deployment has no quorum nodes (SLUICE_LOCK_NODES)")
	default:
		return nil, fault.Invalid("consistency", "this deployment has no lock table (SLUICE_LOCK_TABLE)")
	}
}

// join makes one answer of two refusals, so that every bad field is named. A refusal of another
// kind comes first.
func join(err, more error) error {
	var invalid *fault.Error
	switch {
	case err == nil:
		return more
	case more == nil || !errors.As(err, &invalid) || invalid.Code != fault.InvalidRequest:
		return err
	default:
		return fault.Fields(invalid.Fields).Join(more)
	}
}

type acquireBody struct {
	TTL         *int64          `json:"ttl_ms"`
	Wait        int64           `json:"wait_ms"`
	Token       *string         `json:"token"`
	Owner       string          `json:"owner"`
	Mode        lock.Mode       `json:"mode"`
	Metadata    json.RawMessage `json:"metadata"`
	Consistency string          `json:"consistency"`
}

type semaphoreBody struct {
	TTL         *int64          `json:"ttl_ms"`
	Wait        int64           `json:"wait_ms"`
	Token       *string         `json:"token"`
	Owner       string          `json:"owner"`
	Metadata    json.RawMessage `json:"metadata"`
	Consistency string          `json:"consistency"`
	Capacity    int64           `json:"capacity"`
}

func (a *api) acquire(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, consistency, err := acquireRequest(kind, r)
		b, bad := a.choose(kind, consistency)
		if err = join(err, bad); err != nil {
			return err
		}
		started := time.Now()
		lease, err := b.Acquire(r.Context(), q)
		if q.Wait > 0 && (err == nil || fault.CodeOf(err) == fault.LockHeld) {
			a.metrics.Emit(nil, telemetry.Span("lock_wait", time.Since(started)))
		}
		if err != nil {
			return err
		}
		return httpapi.Write(w, http.StatusOK, leaseOf(kind, lease))
	}
}

func acquireRequest(kind lock.Kind, r *http.Request) (lock.Request, string, error) {
	var body semaphoreBody
	var mode lock.Mode
	if kind == lock.Semaphore {
		if err := httpapi.Decode(r, &body); err != nil {
			return lock.Request{}, "", err
		}
	} else {
		var b acquireBody
		if err := httpapi.Decode(r, &b); err != nil {
			return lock.Request{}, "", err
		}
		mode = b.Mode
		body = semaphoreBody{TTL: b.TTL, Wait: b.Wait, Token: b.Token, Owner: b.Owner, Metadata: b.Metadata,
			Consistency: b.Consistency}
	}
	q := lock.Request{
		Kind: kind, Name: r.PathValue("name"), Owner: body.Owner, Metadata: body.Metadata, Mode: mode,
		Wait: instant.Milliseconds(body.Wait), Capacity: body.Capacity,
	}
	if q.Owner == "" {
		q.Owner = httpapi.Caller(r.Context())
	}
	var f fault.Fields
	q.TTL = ttlOf(&f, body.TTL)
	if body.Token != nil {
		if q.Token = *body.Token; q.Token == "" {
			f.Add("token", "must be %d to %d characters long", lock.MinToken, lock.MaxToken)
		}
	}
	q, err := q.Normalize()
	return q, body.Consistency, f.Join(err)
}

// ttlOf tells a ttl that is missing, and so the default, from one that is out of range.
func ttlOf(f *fault.Fields, ms *int64) time.Duration {
	if ms == nil {
		return lock.DefaultTTL
	}
	if *ms <= 0 { // zero means the default to the domain
		f.Add("ttl_ms", "must be %d to %d", lock.MinTTL.Milliseconds(), lock.MaxTTL.Milliseconds())
		return lock.DefaultTTL
	}
	return instant.Milliseconds(*ms)
}

type heldBody struct {
	Token       string `json:"token"`
	TTL         *int64 `json:"ttl_ms"`
	Consistency string `json:"consistency"`
}

func (a *api) renew(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body heldBody
		if err := httpapi.Decode(r, &body); err != nil {
			return err
		}
		name := r.PathValue("name")
		var f fault.Fields
		ttl := ttlOf(&f, body.TTL)
		b, bad := a.choose(kind, body.Consistency)
		if err := join(f.Join(lock.CheckHeld(name, body.Token, ttl)), bad); err != nil {
			return err
		}
		lease, err := b.Renew(r.Context(), kind, name, body.Token, ttl)
		if err != nil {
			return err
		}
		return httpapi.Write(w, http.StatusOK, renewed{name, lease.Fence, ttl.Milliseconds(),
			instant.Format(time.UnixMilli(lease.ExpiresAt))})
	}
}

type releaseBody struct {
	Token       string `json:"token"`
	Consistency string `json:"consistency"`
}

func (a *api) release(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body releaseBody
		if err := httpapi.Decode(r, &body); err != nil {
			return err
		}
		name := r.PathValue("name")
		b, bad := a.choose(kind, body.Consistency)
		if err := join(lock.CheckHeld(name, body.Token, 0), bad); err != nil {
			return err
		}
		held, err := b.Release(r.Context(), kind, name, body.Token)
		if err != nil {
			return err
		}
		a.metrics.Emit(nil, telemetry.Span("lock_hold", held))
		return httpapi.Write(w, http.StatusOK, map[string]bool{"released": true})
	}
}
