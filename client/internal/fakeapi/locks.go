package fakeapi

import (
	"net/http"
	"time"
)

// poll is the interval at which a waiting request tries again.
const poll = time.Millisecond

type holder struct {
	fence   int64
	expires time.Time
	owner   string
}

type lock struct {
	holders map[string]*holder // by token
	forced  bool
}

// at returns a lock, after it has removed the holders whose lease has ended. The caller holds mu.
func (a *API) at(name string) *lock {
	l := a.locks[name]
	if l == nil {
		l = &lock{holders: make(map[string]*holder)}
		a.locks[name] = l
	}
	for token, h := range l.holders {
		if !time.Now().Before(h.expires) {
			delete(l.holders, token)
		}
	}
	return l
}

func number(body map[string]any, field string) int64 {
	n, _ := body[field].(float64)
	return int64(n)
}

func milliseconds(body map[string]any, field string) time.Duration {
	return time.Duration(number(body, field)) * time.Millisecond
}

func (a *API) acquire(name, token string, body map[string]any, skipWait bool) (int, map[string]any) {
	deadline := time.Now().Add(milliseconds(body, "wait_ms"))
	for {
		status, doc := a.tryAcquire(name, token, body)
		if status == http.StatusOK || skipWait || !time.Now().Before(deadline) {
			return status, doc
		}
		time.Sleep(poll) //nolint:forbidigo // the fake polls
	}
}

func (a *API) tryAcquire(name, token string, body map[string]any) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, ttl := a.at(name), milliseconds(body, "ttl_ms")
	h, reacquired := l.holders[token]
	if !reacquired {
		if len(l.holders) >= max(1, int(number(body, "capacity"))) {
			return l.held()
		}
		a.fence++
		owner, _ := body["owner"].(string)
		h = &holder{fence: a.fence, owner: owner}
		l.holders[token], l.forced = h, false
	}

	h.expires = time.Now().Add(ttl)
	return http.StatusOK, map[string]any{
		"name": name, "token": token, "fence": h.fence, "mode": "exclusive", "ttl_ms": ttl.Milliseconds(),
		"acquired_at": time.Now(), "expires_at": h.expires, "reacquired": reacquired, "in_use": len(l.holders),
	}
}

func (l *lock) held() (int, map[string]any) {
	members := map[string]any{}
	for _, h := range l.holders {
		members["holder"], members["retry_after_ms"] = h.owner, time.Until(h.expires).Milliseconds()
	}
	return refuse(http.StatusConflict, "lock_held", members)
}

func (a *API) renew(name, token string, body map[string]any) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, ttl := a.at(name), milliseconds(body, "ttl_ms")
	h, held := l.holders[token]
	if !held {
		return l.notHeld()
	}
	h.expires = time.Now().Add(ttl)
	return http.StatusOK, map[string]any{
		"name": name, "fence": h.fence, "ttl_ms": ttl.Milliseconds(), "expires_at": h.expires,
	}
}

func (a *API) release(name, token string) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.at(name)
	if _, held := l.holders[token]; !held {
		return l.notHeld()
	}
	delete(l.holders, token)
	return http.StatusOK, map[string]any{"released": true}
}

func (l *lock) notHeld() (int, map[string]any) {
	members := map[string]any{"reason": "expired"}
	switch {
	case len(l.holders) > 0:
		members["reason"] = "held_by_other"
	case l.forced:
		members["forced"] = true
	}
	return refuse(http.StatusConflict, "lock_not_held", members)
}

func (a *API) inspect(name string) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, holders := a.at(name), []any{}
	for _, h := range l.holders {
		holders = append(holders, map[string]any{
			"owner": h.owner, "fence": h.fence, "expires_at": h.expires, "acquired_at": h.expires,
		})
	}
	return http.StatusOK, map[string]any{"name": name, "held": len(holders) > 0, "holders": holders, "waiters": 0}
}

// Force releases a lock ("locks/report") without its token, and returns the number of its holders.
func (a *API) Force(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.at(name)
	n := len(l.holders)
	clear(l.holders)
	l.forced = n > 0
	return n
}

// Forget removes the holders of a lock, like a store that loses its data.
func (a *API) Forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.at(name).holders)
}

// Steal replaces the holders of a lock with a new holder.
func (a *API) Steal(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.at(name)
	clear(l.holders)
	a.fence++
	l.holders["token-of-another"] = &holder{fence: a.fence, expires: time.Now().Add(time.Hour), owner: "another"}
}

// Holder returns the fence of a lock's holder and the end of its lease. The fence is 0 if the lock
// is free.
func (a *API) Holder(name string) (fence int64, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range a.at(name).holders {
		return h.fence, h.expires
	}
	return 0, time.Time{}
}
