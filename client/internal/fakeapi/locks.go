package fakeapi

import (
	"net/http"
	"time"
)

const poll = time.Millisecond

// at returns the lock's entry without the leases that have ended. mu is held.
func (a *API) at(name string) *entry {
	e := a.locks[name]
	if e == nil {
		e = &entry{holders: make(map[string]*holder)}
		a.locks[name] = e
	}
	for token, h := range e.holders {
		if !time.Now().Before(h.expires) {
			delete(e.holders, token)
		}
	}
	return e
}

func number(body map[string]any, field string) int64 {
	n, _ := body[field].(float64)
	return int64(n)
}

func milliseconds(body map[string]any, field string) time.Duration {
	return time.Duration(number(body, field)) * time.Millisecond
}

func (a *API) acquire(name, token string, body map[string]any, hurry bool) (int, map[string]any) {
	deadline := time.Now().Add(milliseconds(body, "wait_ms"))
	for {
		status, doc := a.tryAcquire(name, token, body)
		if status == http.StatusOK || hurry || !time.Now().Before(deadline) {
			return status, doc
		}
		time.Sleep(poll) //nolint:forbidigo // the fake polls
	}
}

func (a *API) tryAcquire(name, token string, body map[string]any) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ttl := a.at(name), milliseconds(body, "ttl_ms")
	owner, _ := body["owner"].(string)
	h, again := e.holders[token]
	if !again {
		if len(e.holders) >= max(1, int(number(body, "capacity"))) {
			for _, other := range e.holders {
				return refuse(http.StatusConflict, "lock_held", "holder", other.owner, "retry_after_ms",
					time.Until(other.expires).Milliseconds())
			}
		}
		a.fence++
		h = &holder{fence: a.fence, owner: owner}
		e.holders[token], e.forced = h, false
	}
	h.expires = time.Now().Add(ttl)
	return http.StatusOK, map[string]any{
		"name": name, "token": token, "fence": h.fence, "mode": "exclusive", "ttl_ms": ttl.Milliseconds(),
		"acquired_at": time.Now(),
		"expires_at":  h.expires, "reacquired": again, "in_use": len(e.holders),
	}
}

func (a *API) renew(name, token string, body map[string]any) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ttl := a.at(name), milliseconds(body, "ttl_ms")
	h, held := e.holders[token]
	if !held {
		return e.notHeld()
	}
	h.expires = time.Now().Add(ttl)
	return http.StatusOK, map[string]any{"name": name, "fence": h.fence, "ttl_ms": ttl.Milliseconds(),
		"expires_at": h.expires}
}

func (a *API) release(name, token string) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.at(name)
	if _, held := e.holders[token]; !held {
		return e.notHeld()
	}
	delete(e.holders, token)
	return http.StatusOK, map[string]any{"released": true}
}

func (e *entry) notHeld() (int, map[string]any) {
	switch {
	case len(e.holders) > 0:
		return refuse(http.StatusConflict, "lock_not_held", "reason", "held_by_other")
	case e.forced:
		return refuse(http.StatusConflict, "lock_not_held", "reason", "expired", "forced", true)
	default:
		return refuse(http.StatusConflict, "lock_not_held", "reason", "expired")
	}
}

func (a *API) inspect(name string) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, holders := a.at(name), []any{}
	for _, h := range e.holders {
		holders = append(holders, map[string]any{"owner": h.owner, "fence": h.fence, "expires_at": h.expires,
			"acquired_at": h.expires})
	}
	return http.StatusOK, map[string]any{"name": name, "held": len(holders) > 0, "holders": holders, "waiters": 0}
}

// Force releases a lock ("locks/report") by force, and returns how many held it.
func (a *API) Force(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.at(name)
	n := len(e.holders)
	clear(e.holders)
	e.forced = n > 0
	return n
}

// Forget loses a lock, as a store that lost its data.
func (a *API) Forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.at(name).holders)
}

// Steal gives the lock to another holder.
func (a *API) Steal(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.at(name)
	clear(e.holders)
	a.fence++
	e.holders["another-holder-entirely"] = &holder{fence: a.fence, expires: time.Now().Add(time.Hour), owner: "another"}
}

// Holder is the fence of the one who holds the lock and when the store will let another in; 0 when
// it is free.
func (a *API) Holder(name string) (fence int64, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range a.at(name).holders {
		return h.fence, h.expires
	}
	return 0, time.Time{}
}
