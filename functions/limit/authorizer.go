package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// authorizerConfig says which policy and which key hold for a request. Stage variables named like
// the fields ("sluice_policy", "sluice_key") and, before them, "sluice_policy_<route>" and
// "sluice_key_<route>" replace it; in a route's key each character that is no letter or digit
// counts as "_". A value is one selection, such as "$request.header.x-api-key", or else is taken as
// it is.
type authorizerConfig struct{ Policy, Key string }

// lambda answers both kinds of event: an authorizer's and an HTTP request.
func (a *api) lambda(handler http.Handler) func(context.Context, json.RawMessage) (any, error) {
	serve := httpapi.Lambda(handler)
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var kind struct {
			Type     string `json:"type"`
			RouteArn string `json:"routeArn"`
		}
		if err := json.Unmarshal(raw, &kind); err != nil {
			return nil, fmt.Errorf("the event is not an object: %w", err)
		}
		if kind.Type == "REQUEST" && kind.RouteArn != "" {
			var e events.APIGatewayV2CustomAuthorizerV2Request
			if err := json.Unmarshal(raw, &e); err != nil {
				return nil, fmt.Errorf("the event is no authorizer request of payload 2.0: %w", err)
			}
			return a.authorize(ctx, e), nil
		}
		var e events.APIGatewayV2HTTPRequest
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("the event is no HTTP request of payload 2.0: %w", err)
		}
		return serve(ctx, e)
	}
}

// authorize decides with a simple response, and puts the decision into its context. A request
// without a key is denied. One whose configured policy does not exist, or that cannot be decided at
// all, is let through and says so: a limiter's mistake must not close the API. But where the
// request itself names the policy, an unknown name is denied: nobody gets out of a limit by a name
// that is none.
func (a *api) authorize(ctx context.Context,
	e events.APIGatewayV2CustomAuthorizerV2Request) events.APIGatewayV2CustomAuthorizerSimpleResponse {
	cfg := a.authorizer.forRequest(e)
	name, key := expand(cfg.Policy, e), expand(cfg.Key, e)
	if key == "" || len(key) > policy.MaxKey {
		return simple(false, map[string]any{"policy": name, "reason": "no_key"})
	}
	p, err := a.named(ctx, name)
	if fault.CodeOf(err) == fault.PolicyNotFound && strings.HasPrefix(cfg.Policy, "$request.") {
		return simple(false, map[string]any{"policy": name, "reason": string(fault.PolicyNotFound)})
	}
	if err == nil {
		var decisions []ratelimit.Decision
		if decisions, _, err = a.limiter.Check(ctx, []ratelimit.Check{resolve(p.Policy, key, 1)}); err == nil {
			a.count(decisions)
			return simple(decisions[0].Allowed, decisionContext(decisions[0]))
		}
	}
	reason := string(fault.CodeOf(err))
	if reason == "" {
		reason = string(fault.Internal)
	}
	a.log.ErrorContext(ctx, "authorizer let a request through undecided", "request_id", e.RequestContext.RequestID,
		"policy", name, "cause", err.Error())
	return simple(true, map[string]any{"policy": name, "reason": reason})
}

// named finds a policy; a name that none can have is not asked for.
func (a *api) named(ctx context.Context, name string) (policy.Known, error) {
	if !fault.ValidName(name) {
		return policy.Known{}, fault.New(fault.PolicyNotFound, "%q is no name of a policy", name)
	}
	return a.cache.Get(ctx, name)
}

func simple(authorized bool, about map[string]any) events.APIGatewayV2CustomAuthorizerSimpleResponse {
	return events.APIGatewayV2CustomAuthorizerSimpleResponse{IsAuthorized: authorized, Context: about}
}

// decisionContext is flat text, as mapping templates and access logs need it.
func decisionContext(d ratelimit.Decision) map[string]any {
	about := map[string]any{
		"policy": d.Policy, "allowed": strconv.FormatBool(d.Allowed), "remaining": strconv.FormatInt(d.Remaining, 10),
		"limit": strconv.FormatInt(d.Limit, 10), "reset_after_ms": strconv.FormatInt(d.ResetAfterMS, 10),
		"violated": string(d.Violated),
		"degraded": strconv.FormatBool(d.Degraded),
	}
	if d.RetryAfterMS != nil {
		about["retry_after_ms"] = strconv.FormatInt(*d.RetryAfterMS, 10)
	}
	return about
}

func (c authorizerConfig) forRequest(e events.APIGatewayV2CustomAuthorizerV2Request) authorizerConfig {
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

// expand replaces a selection by its value; "" when the request lacks it. Text that is no selection
// stays, so that a key can be a constant.
func expand(expression string, e events.APIGatewayV2CustomAuthorizerV2Request) string {
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
