package main

import (
	"encoding/json"

	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/lock"
)

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

func leaseBodyOf(l lock.Lease) leaseBody {
	b := leaseBody{
		Name:       l.Name,
		Token:      l.Token,
		Fence:      l.Fence,
		Mode:       l.Mode,
		TTL:        l.TTL.Milliseconds(),
		AcquiredAt: instant.Format(l.AcquiredAt),
		ExpiresAt:  instant.Format(l.ExpiresAt),
		Reacquired: l.Reacquired,
	}
	if l.Kind == lock.Semaphore {
		b.InUse = &l.InUse
	}
	return b
}

type renewedBody struct {
	Name      string `json:"name"`
	Fence     int64  `json:"fence"`
	TTL       int64  `json:"ttl_ms"`
	ExpiresAt string `json:"expires_at"`
}

func renewedBodyOf(l lock.Lease) renewedBody {
	return renewedBody{
		Name:      l.Name,
		Fence:     l.Fence,
		TTL:       l.TTL.Milliseconds(),
		ExpiresAt: instant.Format(l.ExpiresAt),
	}
}

type stateBody struct {
	Name    string       `json:"name"`
	Held    bool         `json:"held"`
	Mode    *lock.Mode   `json:"mode"` // null if the lock is not held
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

func stateBodyOf(s lock.State) stateBody {
	b := stateBody{Name: s.Name, Held: s.Held, Holders: []holderBody{}, Waiters: s.Waiters}
	if s.Held {
		b.Mode = &s.Mode
	}
	for _, h := range s.Holders {
		b.Holders = append(b.Holders, holderBody{
			Owner:      h.Owner,
			Fence:      h.Fence,
			AcquiredAt: instant.Format(h.AcquiredAt),
			ExpiresAt:  instant.Format(h.ExpiresAt),
			Metadata:   h.Metadata,
		})
	}
	return b
}
