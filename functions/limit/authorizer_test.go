package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/shared/routes"
)

// guarded is the local front door with this function before another one.
type guarded struct {
	guard   func(context.Context, json.RawMessage) (any, error)
	verdict events.APIGatewayV2CustomAuthorizerSimpleResponse // the guard's last
	passed  []map[string]any                                  // the contexts that reached the function behind
}

func (g *guarded) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	if function == "guard" {
		answer, err := g.guard(ctx, payload)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		return text, json.Unmarshal(text, &g.verdict)
	}
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	g.passed = append(g.passed, e.RequestContext.Authorizer.Lambda)
	return []byte(`{"statusCode":200,"body":"{}"}`), nil
}

// door puts the function before GET /v1/queues/{queue}.
func door(t *testing.T, f *fixture, variables map[string]string) (*guarded, string) {
	t.Helper()
	g := &guarded{guard: f.lambda(f.Handler)}
	const route = "GET /v1/queues/{queue}"
	server := httptest.NewServer(gateway.New(gateway.Config{
		Invoker: g, Routes: routes.All(), StageVariables: variables,
		Authorizers: map[string]gateway.Authorizer{route: {Function: "guard"}},
	}))
	t.Cleanup(server.Close)
	return g, server.URL
}

func get(t *testing.T, url string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, w.Body.Close())
	return w.StatusCode
}

func TestAnAuthorizerLetsPassUntilTheLimitAndThenAnswers403(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "api", rule("hourly", "sliding_window", 2, 3_600_000))
	f.authorizer = authorizerConfig{Policy: "api", Key: "$request.header.X-Api-Key"}
	g, url := door(t, f, nil)
	require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-api-key", "ann"))
	require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-api-key", "ann"))
	require.Equal(t, 403, get(t, url+"/v1/queues/q", "x-api-key", "ann"), "HTTP APIs answer a denial with 403")
	require.False(t, g.verdict.IsAuthorized)
	require.Equal(t, "hourly", g.verdict.Context["violated"])
	require.Equal(t, "false", g.verdict.Context["allowed"])
	require.NotEmpty(t, g.verdict.Context["retry_after_ms"])
	require.Len(t, g.passed, 2, "the function behind is not asked")
	require.Equal(t, "0", g.passed[1]["remaining"])
	require.Equal(t, "api", g.passed[1]["policy"])
	require.Equal(t, "2", g.passed[1]["limit"])
	require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-api-key", "bob"), "each key has its own")
}

func TestARequestWithoutAKeyIsDenied(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "api", rule("r", "gcra", 2, 3_600_000))
	f.authorizer = authorizerConfig{Policy: "api", Key: "$request.header.x-api-key"}
	g, url := door(t, f, nil)
	require.Equal(t, 403, get(t, url+"/v1/queues/q"))
	require.Equal(t, "no_key", g.verdict.Context["reason"])
	require.Empty(t, g.passed)
}

func TestPolicyAndKeyComeFromTheRouteOrTheStage(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "stage", rule("r", "gcra", 5, 3_600_000))
	f.put(t, "route", rule("r", "gcra", 7, 3_600_000))
	f.authorizer = authorizerConfig{Policy: "nobody", Key: "nothing"}
	for name, tc := range map[string]struct {
		variables map[string]string
		limit     string
		key       string
	}{
		"the stage's": {map[string]string{"sluice_policy": "stage", "sluice_key": "$request.path.queue"}, "5", "q"},
		"the route's before the stage's": {map[string]string{
			"sluice_policy": "stage", "sluice_key": "$request.path.queue",
			"sluice_policy_GET__v1_queues__queue_": "route",
			"sluice_key_GET__v1_queues__queue_":    "$request.querystring.tenant",
		}, "7", "t1"},
		"a policy by a variable": {map[string]string{"sluice_policy": "$stageVariables.plan", "plan": "route",
			"sluice_key": "$context.identity.sourceIp"}, "7", "127.0.0.1"},
		"one key for all": {map[string]string{"sluice_policy": "stage", "sluice_key": "everybody"}, "5",
			"everybody"},
		"the route itself": {map[string]string{"sluice_policy": "stage", "sluice_key": "$context.routeKey"},
			"5", "GET /v1/queues/{queue}"},
		"who signed": {map[string]string{"sluice_policy": "stage",
			"sluice_key": "$context.identity.userArn"}, "5", "arn:aws:iam::000000000000:user/AKID"},
		"the source by its old name": {map[string]string{"sluice_policy": "route",
			"sluice_key": "$context.http.sourceIp"}, "7", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, url := door(t, f, tc.variables)
			require.Equal(t, 200, get(t, url+"/v1/queues/q?tenant=t1", "Authorization",
				"AWS4-HMAC-SHA256 Credential=AKID/20260101/x/execute-api/aws4_request, Signature=0"))
			require.Equal(t, tc.limit, g.passed[0]["limit"])
			policy, _ := g.passed[0]["policy"].(string)
			after := f.Want(t, 200, "POST", "/v1/limits/check",
				object{"checks": []object{{"policy": policy, "key": tc.key}}})
			decisions, _ := after.Body["decisions"].([]any)
			d, _ := decisions[0].(object)
			require.Less(t, d["remaining"], d["limit"].(float64)-1, "this key was charged")
		})
	}
}

func TestALimitersMistakeDoesNotCloseTheAPI(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.authorizer = authorizerConfig{Policy: "nobody", Key: "k"}
	g, url := door(t, f, nil)
	require.Equal(t, 200, get(t, url+"/v1/queues/q"))
	require.Equal(t, "policy_not_found", g.passed[0]["reason"])
	require.Contains(t, f.Log.String(), "undecided", "and the log tells")
}

func TestNobodyGetsOutOfALimitByAPolicyThatIsNone(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "gold", rule("r", "gcra", 2, 3_600_000))
	f.authorizer = authorizerConfig{Policy: "$request.header.x-plan", Key: "k"}
	g, url := door(t, f, nil)
	require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-plan", "gold"))
	require.Equal(t, 403, get(t, url+"/v1/queues/q", "x-plan", "silver"))
	require.Equal(t, "policy_not_found", g.verdict.Context["reason"])
	require.Equal(t, 403, get(t, url+"/v1/queues/q", "x-plan", "/?"))
	require.Equal(t, 403, get(t, url+"/v1/queues/q"))
}

func TestAnAuthorizerWithoutRedisFollowsThePolicy(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.Want(t, 201, "PUT", "/v1/policies/closed",
		object{"on_unavailable": "deny", "rules": []object{rule("r", "gcra", 10, 1000)}})
	f.Want(t, 201, "PUT", "/v1/policies/open",
		object{"on_unavailable": "allow", "rules": []object{rule("r", "gcra", 10, 1000)}})
	require.NoError(t, f.redis.Server.Kill())
	for policy, status := range map[string]int{"closed": 403, "open": 200} {
		f.authorizer = authorizerConfig{Policy: policy, Key: "k"}
		g, url := door(t, f, nil)
		require.Equal(t, status, get(t, url+"/v1/queues/q"))
		require.Equal(t, "true", g.verdict.Context["degraded"])
	}
}

func TestOneFunctionAnswersRequestsAndAuthorizers(t *testing.T) {
	t.Parallel()
	f := start(t)
	handler := f.lambda(f.Handler)
	answer, err := handler(t.Context(),
		json.RawMessage(`{"version":"2.0","rawPath":"/v1/policies","requestContext":{"requestId":"r1","http":{"method":"GET"}}}`))
	require.NoError(t, err)
	response, ok := answer.(events.APIGatewayV2HTTPResponse)
	require.True(t, ok)
	require.Equal(t, 200, response.StatusCode)
	require.Equal(t, "r1", response.Headers["x-request-id"], "the gateway's own id")
	for _, bad := range []string{`[]`, `"x"`, `{`, `{"type":"REQUEST","routeArn":"a","headers":[]}`, `{"rawPath":1}`} {
		_, err = handler(t.Context(), json.RawMessage(bad))
		require.Error(t, err, bad)
	}
}
