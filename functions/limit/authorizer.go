package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

type (
	authorizerEvent  = events.APIGatewayV2CustomAuthorizerV2Request
	authorizerAnswer = events.APIGatewayV2CustomAuthorizerSimpleResponse
)

// authorizerConfig selects the policy and the key of a request. Each field is a selection
// expression, such as "$request.header.x-api-key", or a constant. The stage variables
// "sluice_policy" and "sluice_key" take precedence over the fields. The stage variables
// "sluice_policy_<route>" and "sluice_key_<route>" take precedence over all of these. <route> is
// the route key, in which "_" replaces every character that is not an ASCII letter or digit.
type authorizerConfig struct{ Policy, Key string }

// lambda returns a handler for both kinds of events: authorizer requests and HTTP requests.
func (a *api) lambda(handler http.Handler) func(context.Context, json.RawMessage) (any, error) {
	serve := httpapi.Lambda(handler)

	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var kind struct {
			Type     string `json:"type"`
			RouteArn string `json:"routeArn"`
		}
		if err := json.Unmarshal(raw, &kind); err != nil {
			return nil, fmt.Errorf("error decoding the event: not an object: %w", err)
		}
		if kind.Type == "REQUEST" && kind.RouteArn != "" {
			var e authorizerEvent
			if err := json.Unmarshal(raw, &e); err != nil {
				return nil, fmt.Errorf("error decoding the event: not an authorizer request of format 2.0: %w", err)
			}
			return a.authorize(ctx, e), nil
		}

		var e events.APIGatewayV2HTTPRequest
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("error decoding the event: not an HTTP request of format 2.0: %w", err)
		}

		return serve(ctx, e)
	}
}

// authorize checks a request against its limit and returns the decision in the authorizer context.
// It denies a request without a valid key. If the configured policy does not exist, or if the check
// fails, it authorizes the request and logs an error, so that a misconfigured limiter does not
// block the API. If the request itself names the policy, authorize denies an unknown name:
// otherwise callers could evade the limit with an invented name.
func (a *api) authorize(ctx context.Context, e authorizerEvent) authorizerAnswer {
	cfg := a.authorizer.forRequest(e)
	request := ratelimit.Request{Policy: expand(cfg.Policy, e), Key: expand(cfg.Key, e)}
	if !policy.ValidKey(request.Key) {
		return simple(false, map[string]any{"policy": request.Policy, "reason": "no_key"})
	}

	d, err := a.decide(ctx, request)
	switch {
	case err == nil:
		a.count(d)
		return simple(d.Allowed, decisionContext(d))
	case errors.Is(err, policy.ErrNotFound) && strings.HasPrefix(cfg.Policy, "$request."):
		return simple(false, map[string]any{"policy": request.Policy, "reason": string(fault.PolicyNotFound)})
	}

	reason := fault.CodeOf(err)
	if reason == "" {
		reason = fault.Internal
	}
	a.log.ErrorContext(ctx, "authorizer allowed a request without a decision", "request_id", e.RequestContext.RequestID,
		"policy", request.Policy, "cause", err.Error())

	return simple(true, map[string]any{"policy": request.Policy, "reason": string(reason)})
}

// decide checks an authorizer request against its policy. If the policy name is invalid, decide
// returns policy_not_found and does not read the store.
func (a *api) decide(ctx context.Context, request ratelimit.Request) (ratelimit.Decision, error) {
	if !fault.ValidName(request.Policy) {
		return ratelimit.Decision{}, fault.New(fault.PolicyNotFound, "%q is not a valid policy name", request.Policy)
	}
	p, err := a.cache.Get(ctx, request.Policy)
	if err != nil {
		return ratelimit.Decision{}, err
	}

	return a.limiter.Check(ctx, request.Under(p.Policy))
}

func simple(authorized bool, about map[string]any) authorizerAnswer {
	return authorizerAnswer{IsAuthorized: authorized, Context: about}
}

// decisionContext returns a decision as a flat map of strings, for mapping templates and access
// logs.
func decisionContext(d ratelimit.Decision) map[string]any {
	about := map[string]any{
		"policy":         d.Policy,
		"allowed":        strconv.FormatBool(d.Allowed),
		"remaining":      strconv.FormatInt(d.Remaining, 10),
		"limit":          strconv.FormatInt(d.Limit, 10),
		"reset_after_ms": strconv.FormatInt(instant.CeilMilliseconds(d.ResetAfter), 10),
		"violated":       d.Violated,
		"degraded":       strconv.FormatBool(d.Degraded),
	}
	if d.RetryAfter != ratelimit.Never {
		about["retry_after_ms"] = strconv.FormatInt(instant.CeilMilliseconds(d.RetryAfter), 10)
	}

	return about
}

// forRequest returns the configuration for a request: c, with the values of the stage variables
// that take precedence.
func (c authorizerConfig) forRequest(e authorizerEvent) authorizerConfig {
	route := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, e.RouteKey)
	first := func(names ...string) string {
		for _, n := range names {
			if v := e.StageVariables[n]; v != "" {
				return v
			}
		}
		return ""
	}

	if v := first("sluice_policy_"+route, "sluice_policy"); v != "" {
		c.Policy = v
	}
	if v := first("sluice_key_"+route, "sluice_key"); v != "" {
		c.Key = v
	}

	return c
}

// expand returns the part of the request that a selection expression selects, or "" if the request
// does not have it. If expression is not a selection expression, expand returns it unchanged.
func expand(expression string, e authorizerEvent) string {
	if name, ok := strings.CutPrefix(expression, "$request.header."); ok {
		return e.Headers[strings.ToLower(name)]
	}
	if name, ok := strings.CutPrefix(expression, "$request.querystring."); ok {
		return e.QueryStringParameters[name]
	}
	if name, ok := strings.CutPrefix(expression, "$request.path."); ok {
		return e.PathParameters[name]
	}
	if name, ok := strings.CutPrefix(expression, "$stageVariables."); ok {
		return e.StageVariables[name]
	}

	switch expression {
	case "$context.identity.sourceIp", "$context.http.sourceIp":
		return e.RequestContext.HTTP.SourceIP
	case "$context.routeKey":
		return e.RouteKey
	case "$context.identity.userArn":
		if auth := e.RequestContext.Authorizer; auth != nil && auth.IAM != nil {
			return auth.IAM.UserARN
		}
		return ""
	default:
		return expression
	}
}
