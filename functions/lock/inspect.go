package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/lock"
)

// named reads the name and the consistency of a call without a body.
func (a *api) named(kind lock.Kind, r *http.Request) (string, backend, error) {
	query, err := httpapi.Query(r, "consistency")
	name := r.PathValue("name")
	var f fault.Fields
	f.CheckName("name", name)
	b, bad := a.choose(kind, query.Get("consistency"))
	return name, b, join(f.Join(err), bad)
}

func (a *api) inspect(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, b, err := a.named(kind, r)
		if err != nil {
			return err
		}
		state, err := b.Inspect(r.Context(), kind, name)
		if err != nil {
			return err
		}
		return httpapi.Write(w, http.StatusOK, stateOf(state))
	}
}

func (a *api) force(kind lock.Kind) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, b, err := a.named(kind, r)
		if err != nil {
			return err
		}
		released, err := b.Force(r.Context(), kind, name)
		if err != nil {
			return err
		}
		a.log.WarnContext(r.Context(), "lock released by force", "request_id", httpapi.RequestID(r.Context()),
			"caller", httpapi.Caller(r.Context()), "kind", string(kind), "name", name, "holders", released)
		return httpapi.Write(w, http.StatusOK, map[string]int64{"released": released})
	}
}

type leaseBody struct {
	Name       string    `json:"name"`
	Token      string    `json:"token"`
	Fence      int64     `json:"fence"`
	Mode       lock.Mode `json:"mode"`
	TTL        int64     `json:"ttl_ms"`
	AcquiredAt string    `json:"acquired_at"`
	ExpiresAt  string    `json:"expires_at"`
	Reacquired bool      `json:"reacquired"`
	InUse      *int64    `json:"in_use,omitempty"` // semaphores only
}

func leaseOf(kind lock.Kind, l lock.Lease) leaseBody {
	b := leaseBody{
		Name: l.Name, Token: l.Token, Fence: l.Fence, Mode: l.Mode, TTL: l.TTL.Milliseconds(),
		AcquiredAt: instant.Format(time.UnixMilli(l.AcquiredAt)),
		ExpiresAt:  instant.Format(time.UnixMilli(l.ExpiresAt)), Reacquired: l.Reacquired,
	}
	if kind == lock.Semaphore {
		b.InUse = &l.InUse
	}
	return b
}

type renewed struct {
	Name      string `json:"name"`
	Fence     int64  `json:"fence"`
	TTL       int64  `json:"ttl_ms"`
	ExpiresAt string `json:"expires_at"`
}

type stateBody struct {
	Name    string       `json:"name"`
	Held    bool         `json:"held"`
	Mode    *lock.Mode   `json:"mode"` // null when it is free
	Holders []holderBody `json:"holders"`
	Waiters int64        `json:"waiters"`
}

type holderBody struct {
	Owner      string          `json:"owner"`
	Fence      int64           `json:"fence"`
	AcquiredAt string          `json:"acquired_at"`
	ExpiresAt  string          `json:"expires_at"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
}

func stateOf(s lock.State) stateBody {
	b := stateBody{Name: s.Name, Held: s.Held, Holders: []holderBody{}, Waiters: s.Waiters}
	if s.Held {
		b.Mode = &s.Mode
	}
	for _, h := range s.Holders {
		b.Holders = append(b.Holders, holderBody{
			Owner: h.Owner, Fence: h.Fence, AcquiredAt: instant.Format(time.UnixMilli(h.AcquiredAt)),
			ExpiresAt: instant.Format(time.UnixMilli(h.ExpiresAt)), Metadata: h.Metadata,
		})
	}
	return b
}
