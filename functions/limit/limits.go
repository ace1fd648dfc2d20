package main

import (
	"net/http"

	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// requestFromBody returns the request of a check or a refund. It reads the key and the cost from
// the body, and the policy from the path.
func requestFromBody(r *http.Request) (ratelimit.Request, error) {
	var body struct {
		Key  string `json:"key"`
		Cost *int64 `json:"cost"`
	}
	if err := httpapi.Decode(r, &body); err != nil {
		return ratelimit.Request{}, err
	}
	request := ratelimit.Request{Policy: r.PathValue("policy"), Key: body.Key, Cost: body.Cost}

	return request, request.Validate()
}

// requestFromQuery returns the request of a call that has no body. It reads the key from the query,
// and the policy from the path.
func requestFromQuery(r *http.Request) (ratelimit.Request, error) {
	query, err := httpapi.Query(r, "key")
	if err != nil {
		return ratelimit.Request{}, err
	}
	request := ratelimit.Request{Policy: r.PathValue("policy"), Key: query.Get("key")}

	return request, request.Validate()
}

// requestsFromBody reads the requests of a batch.
func requestsFromBody(r *http.Request) ([]ratelimit.Request, error) {
	var body struct {
		Checks []struct {
			Policy string `json:"policy"`
			Key    string `json:"key"`
			Cost   *int64 `json:"cost"`
		} `json:"checks"`
	}
	if err := httpapi.Decode(r, &body); err != nil {
		return nil, err
	}
	requests := make([]ratelimit.Request, len(body.Checks))
	for i, c := range body.Checks {
		requests[i] = ratelimit.Request{Policy: c.Policy, Key: c.Key, Cost: c.Cost}
	}

	return requests, ratelimit.ValidateAll(requests)
}

// resolve reads the policy of a request and returns the check of the request under this policy. If
// the cached policy may be outdated, resolve marks the answer as degraded.
func (a *api) resolve(w http.ResponseWriter, r *http.Request, request ratelimit.Request) (ratelimit.Check, error) {
	p, err := a.cache.Get(r.Context(), request.Policy)
	if err != nil {
		return ratelimit.Check{}, err
	}
	if p.Stale && w.Header().Get("Sluice-Degraded") == "" {
		degrade(w, policiesCached)
	}

	return request.Under(p.Policy), nil
}

func (a *api) check(w http.ResponseWriter, r *http.Request) error {
	request, err := requestFromBody(r)
	if err != nil {
		return err
	}
	c, err := a.resolve(w, r, request)
	if err != nil {
		return err
	}
	d, err := a.limiter.Check(r.Context(), c)
	if err != nil {
		return err
	}
	a.count(d)

	return answer(w, &d)
}

func (a *api) checkAll(w http.ResponseWriter, r *http.Request) error {
	requests, err := requestsFromBody(r)
	if err != nil {
		return err
	}
	checks := make([]ratelimit.Check, len(requests))
	for i, request := range requests {
		if checks[i], err = a.resolve(w, r, request); err != nil {
			return err
		}
	}
	decisions, allowed, err := a.limiter.CheckAll(r.Context(), checks)
	if err != nil {
		return err
	}
	a.count(decisions...)

	return answerAll(w, decisions, allowed)
}

func (a *api) refund(w http.ResponseWriter, r *http.Request) error {
	request, err := requestFromBody(r)
	if err != nil {
		return err
	}
	c, err := a.resolve(w, r, request)
	if err != nil {
		return err
	}
	d, err := a.limiter.Refund(r.Context(), c)
	if err != nil {
		return err
	}

	return show(w, &d)
}

func (a *api) peek(w http.ResponseWriter, r *http.Request) error {
	request, err := requestFromQuery(r)
	if err != nil {
		return err
	}
	c, err := a.resolve(w, r, request)
	if err != nil {
		return err
	}
	d, err := a.limiter.Peek(r.Context(), c)
	if err != nil {
		return err
	}

	return show(w, &d)
}

func (a *api) reset(w http.ResponseWriter, r *http.Request) error {
	request, err := requestFromQuery(r)
	if err != nil {
		return err
	}
	c, err := a.resolve(w, r, request)
	if err != nil {
		return err
	}
	if err := a.limiter.Reset(r.Context(), c); err != nil {
		return err
	}

	return httpapi.Write(w, http.StatusOK,
		map[string]any{"policy": request.Policy, "key": request.Key, "reset": true})
}
