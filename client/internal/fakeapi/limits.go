package fakeapi

import "net/http"

// limit is the number of units that every policy allows per key. Charged units never become
// available again.
const limit = 2

// check charges a key, or denies the request.
func (a *API) check(policy string, body map[string]any) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, _ := body["key"].(string)
	cost := max(1, number(body, "cost"))
	account := policy + "/" + key

	allowed := a.charged[account]+cost <= limit
	if allowed {
		a.charged[account] += cost
	}
	doc := map[string]any{
		"allowed": allowed, "policy": policy, "key": key, "cost": cost, "limit": limit,
		"remaining": limit - a.charged[account], "reset_after_ms": 60_000, "retry_after_ms": 0, "mode": "enforce",
	}
	if allowed {
		return http.StatusOK, doc
	}
	doc["violated"], doc["retry_after_ms"] = "per-minute", 30_000
	return refuse(http.StatusTooManyRequests, "quota_exceeded", doc)
}
