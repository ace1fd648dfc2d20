package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// backend is a store of locks.
type backend interface {
	Acquire(ctx context.Context, req lock.Request) (lock.Lease, error)
	Renew(ctx context.Context, key lock.Key, token string, ttl time.Duration) (lock.Lease, error)
	Release(ctx context.Context, key lock.Key, token string) (time.Duration, error)
	Force(ctx context.Context, key lock.Key) (int64, error)
	Inspect(ctx context.Context, key lock.Key) (lock.State, error)
}

// backends are the stores of the deployment. A store that is not deployed is nil. The field
// redis is always set.
type backends struct{ redis, quorum, strong backend }

type api struct {
	backends backends
	log      *slog.Logger
	metrics  *telemetry.Metrics
}

func newAPI(b backends, log *slog.Logger, metrics *telemetry.Metrics) *httpapi.API {
	a := &api{backends: b, log: log, metrics: metrics}
	router := httpapi.New(log, metrics)
	for path, kind := range map[string]lock.Kind{
		"/v1/locks/{name}":      lock.Lock,
		"/v1/semaphores/{name}": lock.Semaphore,
	} {
		router.Handle("POST "+path+"/acquire", a.acquire(kind))
		router.Handle("POST "+path+"/renew", a.renew(kind))
		router.Handle("POST "+path+"/release", a.release(kind))
		router.Handle("GET "+path, a.inspect(kind))
		router.Handle("DELETE "+path, a.force(kind))
	}
	return router
}

// backendFor returns the store that the field "consistency" of a request selects, or an
// invalid_request error for this field.
func (a *api) backendFor(kind lock.Kind, consistency string) (backend, error) {
	switch {
	case consistency == "" || consistency == "redis":
		return a.backends.redis, nil
	case consistency != "quorum" && consistency != "strong":
		return nil, fault.Invalid("consistency", `must be "redis", "quorum" or "strong"`)
	case kind == lock.Semaphore:
		return nil, fault.Invalid("consistency", `must be "redis" for a semaphore`)
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

func (a *api) acquire(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		req, consistency, err := acquireRequest(kind, r)
		if err != nil {
			return err
		}
		store, err := a.backendFor(kind, consistency)
		if err != nil {
			_, invalid := req.Normalize()
			return joinInvalid(invalid, err)
		}

		started := time.Now()
		lease, err := store.Acquire(r.Context(), req)
		if req.Wait > 0 && (err == nil || fault.CodeOf(err) == fault.LockHeld) {
			a.metrics.Emit(nil, telemetry.Span("lock_wait", time.Since(started)))
		}
		if err != nil {
			return err
		}
		return httpapi.Write(w, http.StatusOK, leaseBodyOf(lease))
	}
}

func (a *api) renew(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body renewBody
		if err := httpapi.Decode(r, &body); err != nil {
			return err
		}
		key, ttl := keyOf(kind, r), ttlOf(body.TTL)
		store, err := a.backendFor(kind, body.Consistency)
		if err != nil {
			_, _, invalid := lock.NormalizeRenewal(key, body.Token, ttl)
			return joinInvalid(invalid, err)
		}

		lease, err := store.Renew(r.Context(), key, body.Token, ttl)
		if err != nil {
			return err
		}
		return httpapi.Write(w, http.StatusOK, renewedBodyOf(lease))
	}
}

func (a *api) release(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body releaseBody
		if err := httpapi.Decode(r, &body); err != nil {
			return err
		}
		key := keyOf(kind, r)
		store, err := a.backendFor(kind, body.Consistency)
		if err != nil {
			_, invalid := lock.NormalizeRelease(key, body.Token)
			return joinInvalid(invalid, err)
		}

		held, err := store.Release(r.Context(), key, body.Token)
		if err != nil {
			return err
		}
		a.metrics.Emit(nil, telemetry.Span("lock_hold", held))
		return httpapi.Write(w, http.StatusOK, map[string]bool{"released": true})
	}
}

func (a *api) inspect(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, store, err := a.keyAndBackend(kind, r)
		if err != nil {
			return err
		}
		state, err := store.Inspect(r.Context(), key)
		if err != nil {
			return err
		}
		return httpapi.Write(w, http.StatusOK, stateBodyOf(state))
	}
}

func (a *api) force(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, store, err := a.keyAndBackend(kind, r)
		if err != nil {
			return err
		}
		released, err := store.Force(r.Context(), key)
		if err != nil {
			return err
		}
		a.log.WarnContext(r.Context(), "lock released by force", "request_id", httpapi.RequestID(r.Context()),
			"caller", httpapi.Caller(r.Context()), "kind", string(kind), "name", key.Name, "holders", released)
		return httpapi.Write(w, http.StatusOK, map[string]int64{"released": released})
	}
}

// keyAndBackend returns the key and the store for a request that has no body. It reads them from
// the request's path and query.
func (a *api) keyAndBackend(kind lock.Kind, r *http.Request) (lock.Key, backend, error) {
	key := keyOf(kind, r)
	query, queryErr := httpapi.Query(r, "consistency")
	store, storeErr := a.backendFor(kind, query.Get("consistency"))
	if queryErr == nil && storeErr == nil {
		return key, store, nil
	}
	_, invalid := key.Normalize()
	return key, nil, joinInvalid(invalid, queryErr, storeErr)
}
