package main

import (
	"log/slog"

	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
	"github.com/sluicehq/sluice/shared/ratelimit"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type api struct {
	limiter    *ratelimit.Limiter
	store      *dynamopolicy.Store
	cache      *policy.Cache
	checker    *healthChecker
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

// count emits a metric for the outcome of each decision. Keys and policy names are never dimensions
// of the metric.
func (a *api) count(decisions ...ratelimit.Decision) {
	for _, d := range decisions {
		outcome := "allowed"
		switch {
		case !d.Allowed:
			outcome = "denied"
		case d.Violated != "":
			outcome = "shadow_denied"
		}
		metrics := []telemetry.Metric{telemetry.One(outcome, telemetry.Count, 1)}
		if d.Degraded {
			metrics = append(metrics, telemetry.One("degraded", telemetry.Count, 1))
		}
		a.metrics.Emit(nil, metrics...)
	}
}
