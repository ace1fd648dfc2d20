package main

import (
	"log/slog"
	"net/http"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
	"github.com/sluicehq/sluice/shared/ratelimit"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// maxChecks bounds one call to /v1/limits/check.
const maxChecks = 20

type api struct {
	limiter    *ratelimit.Limiter
	store      *dynamopolicy.Store
	cache      *policy.Cache
	doctor     *doctor
	log        *slog.Logger
	metrics    *telemetry.Metrics
	authorizer authorizerConfig
}

func (a *api) routes() *httpapi.API {
	router := httpapi.New(a.log, a.metrics)
	router.Handle("POST /v1/limits/check", a.checkAll)
	router.Handle("POST /v1/limits/{policy}/check", a.check)
	router.Handle("POST /v1/limits/{policy}/refund", a.refund)
	router.Handle("GET /v1/limits/{policy}", a.peek)
	router.Handle("DELETE /v1/limits/{policy}", a.reset)
	router.Handle("GET /v1/policies", a.listPolicies)
	router.Handle("GET /v1/policies/{name}", a.getPolicy)
	router.Handle("PUT /v1/policies/{name}", a.putPolicy)
	router.Handle("DELETE /v1/policies/{name}", a.deletePolicy)
	router.Handle("GET /v1/health", a.health)
	return router
}

type charge struct {
	Key  string `json:"key"`
	Cost *int64 `json:"cost"`
}

// validate notes what is wrong, with prefix before each field's name, and returns the cost.
func (c charge) validate(f *fault.Fields, prefix string) int64 {
	policy.CheckKey(f, prefix+"key", c.Key)
	if c.Cost == nil {
		return 1
	}
	if *c.Cost < 1 || *c.Cost > policy.MaxCost {
		f.Add(prefix+"cost", "must be 1 to %d", policy.MaxCost)
	}
	return *c.Cost
}

// ask reads the body of a check or refund for the policy in the path.
func (a *api) ask(w http.ResponseWriter, r *http.Request) (ratelimit.Check, error) {
	var body charge
	if err := httpapi.Decode(r, &body); err != nil {
		return ratelimit.Check{}, err
	}
	var f fault.Fields
	f.CheckName("policy", r.PathValue("policy"))
	cost := body.validate(&f, "")
	if err := f.Err(); err != nil {
		return ratelimit.Check{}, err
	}
	return a.find(w, r, r.PathValue("policy"), body.Key, cost)
}

// askByQuery is the same for the calls that name the key in the query.
func (a *api) askByQuery(w http.ResponseWriter, r *http.Request) (ratelimit.Check, error) {
	query, err := httpapi.Query(r, "key")
	if err != nil {
		return ratelimit.Check{}, err
	}
	var f fault.Fields
	f.CheckName("policy", r.PathValue("policy"))
	policy.CheckKey(&f, "key", query.Get("key"))
	if err := f.Err(); err != nil {
		return ratelimit.Check{}, err
	}
	return a.find(w, r, r.PathValue("policy"), query.Get("key"), 1)
}

// find resolves a check, and says in the answer when the policy may be out of date.
func (a *api) find(w http.ResponseWriter, r *http.Request, name, key string, cost int64) (ratelimit.Check, error) {
	p, err := a.cache.Get(r.Context(), name)
	if err != nil {
		return ratelimit.Check{}, err
	}
	if p.Stale && w.Header().Get("Sluice-Degraded") == "" {
		degrade(w, policiesCached)
	}
	return resolve(p.Policy, key, cost), nil
}

// resolve applies a policy to a key.
func resolve(p policy.Policy, key string, cost int64) ratelimit.Check {
	mode, rules := p.Match(key)
	return ratelimit.Check{
		Policy: p.Name, Key: key, Cost: cost, Mode: mode, Rules: rules,
		OnUnavailable: p.OnUnavailable, LocalShare: p.LocalShare, NoDenyCache: p.NoDenyCache,
	}
}

func (a *api) check(w http.ResponseWriter, r *http.Request) error {
	c, err := a.ask(w, r)
	if err != nil {
		return err
	}
	decisions, _, err := a.limiter.Check(r.Context(), []ratelimit.Check{c})
	if err != nil {
		return err
	}
	a.count(decisions)
	return answer(w, &decisions[0])
}

type batch struct {
	Checks []struct {
		Policy string `json:"policy"`
		Key    string `json:"key"`
		Cost   *int64 `json:"cost"`
	} `json:"checks"`
}

func (a *api) checkAll(w http.ResponseWriter, r *http.Request) error {
	var body batch
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	checks, err := a.resolveAll(w, r, body)
	if err != nil {
		return err
	}
	decisions, allowed, err := a.limiter.Check(r.Context(), checks)
	if err != nil {
		return err
	}
	a.count(decisions)
	return answerAll(w, decisions, allowed)
}

func (a *api) refund(w http.ResponseWriter, r *http.Request) error {
	c, err := a.ask(w, r)
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
	c, err := a.askByQuery(w, r)
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
	c, err := a.askByQuery(w, r)
	if err != nil {
		return err
	}
	if err := a.limiter.Reset(r.Context(), c); err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, map[string]any{"policy": c.Policy, "key": c.Key, "reset": true})
}

// count emits the outcomes of decisions; a policy's name is chosen by the operator, a key never
// becomes a dimension.
func (a *api) count(decisions []ratelimit.Decision) {
	for _, d := range decisions {
		name := "allowed"
		switch {
		case !d.Allowed:
			name = "denied"
		case d.Violated != "":
			name = "shadow_denied"
		}
		metrics := []telemetry.Metric{telemetry.One(name, telemetry.Count, 1)}
		if d.Degraded {
			metrics = append(metrics, telemetry.One("degraded", telemetry.Count, 1))
		}
		a.metrics.Emit(nil, metrics...)
	}
}
