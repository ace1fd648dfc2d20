package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/shared/routes"
)

// guarded invokes this function as the authorizer of another function behind the local gateway.
type guarded struct {
	guard  func(context.Context, json.RawMessage) (any, error)
	answer authorizerAnswer // the authorizer's last answer
	passed []map[string]any // the authorizer contexts that reached the other function
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
		return text, json.Unmarshal(text, &g.answer)
	}
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	g.passed = append(g.passed, e.RequestContext.Authorizer.Lambda)
	return []byte(`{"statusCode":200,"body":"{}"}`), nil
}

// guard starts a gateway whose route GET /v1/queues/{queue} has the function as its authorizer.
func guard(t *testing.T, f *fixture, variables map[string]string) (*guarded, string) {
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

func TestAuthorizer(t *testing.T) {
	t.Parallel()
	t.Run("over the limit: requests are answered with 403", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "api", rule("hourly", "sliding_window", 2, 3_600_000))
		f.authorizer = authorizerConfig{Policy: "api", Key: "$request.header.X-Api-Key"}
		g, url := guard(t, f, nil)
		require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-api-key", "ann"))
		require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-api-key", "ann"))
		require.Equal(t, 403, get(t, url+"/v1/queues/q", "x-api-key", "ann"), "HTTP APIs answer a denial with 403")
		require.False(t, g.answer.IsAuthorized)
		require.Equal(t, "hourly", g.answer.Context["violated"])
		require.Equal(t, "false", g.answer.Context["allowed"])
		require.NotEmpty(t, g.answer.Context["retry_after_ms"])
		require.Len(t, g.passed, 2, "denied requests do not reach the function")
		require.Equal(t, "0", g.passed[1]["remaining"])
		require.Equal(t, "api", g.passed[1]["policy"])
		require.Equal(t, "2", g.passed[1]["limit"])
		require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-api-key", "bob"), "each key has its own limit")
	})

	t.Run("no key: the request is denied", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "api", rule("r", "gcra", 2, 3_600_000))
		f.authorizer = authorizerConfig{Policy: "api", Key: "$request.header.x-api-key"}
		g, url := guard(t, f, nil)
		require.Equal(t, 403, get(t, url+"/v1/queues/q"))
		require.Equal(t, "no_key", g.answer.Context["reason"])
		require.Empty(t, g.passed)
	})

	t.Run("invalid key: the request is denied", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "api", rule("r", "gcra", 2, 3_600_000))
		f.authorizer = authorizerConfig{Policy: "api", Key: "$request.header.x-api-key"}
		for _, key := range []string{strings.Repeat("k", 513), "\xff"} {
			answer := f.authorize(t.Context(), authorizerEvent{Headers: map[string]string{"x-api-key": key}})
			require.False(t, answer.IsAuthorized)
			require.Equal(t, "no_key", answer.Context["reason"])
		}
	})

	t.Run("policy and key: are selected by route, stage or environment", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "stage", rule("r", "gcra", 5, 3_600_000))
		f.put(t, "route", rule("r", "gcra", 7, 3_600_000))
		f.authorizer = authorizerConfig{Policy: "missing", Key: "nothing"}
		for name, tc := range map[string]struct {
			variables map[string]string
			limit     string
			key       string
		}{
			"stage variables": {map[string]string{
				"sluice_policy": "stage", "sluice_key": "$request.path.queue",
			}, "5", "q"},
			"route variables take precedence": {map[string]string{
				"sluice_policy": "stage", "sluice_key": "$request.path.queue",
				"sluice_policy_GET__v1_queues__queue_": "route",
				"sluice_key_GET__v1_queues__queue_":    "$request.querystring.tenant",
			}, "7", "t1"},
			"a policy from another variable": {map[string]string{
				"sluice_policy": "$stageVariables.plan", "plan": "route", "sluice_key": "$context.identity.sourceIp",
			}, "7", "127.0.0.1"},
			"a constant key": {map[string]string{
				"sluice_policy": "stage", "sluice_key": "everybody",
			}, "5", "everybody"},
			"the route key": {map[string]string{
				"sluice_policy": "stage", "sluice_key": "$context.routeKey",
			}, "5", "GET /v1/queues/{queue}"},
			"the signer": {map[string]string{
				"sluice_policy": "stage", "sluice_key": "$context.identity.userArn",
			}, "5", "arn:aws:iam::000000000000:user/AKID"},
			"the older name of the source IP": {map[string]string{
				"sluice_policy": "route", "sluice_key": "$context.http.sourceIp",
			}, "7", "127.0.0.1"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g, url := guard(t, f, tc.variables)
				require.Equal(t, 200, get(t, url+"/v1/queues/q?tenant=t1", "Authorization",
					"AWS4-HMAC-SHA256 Credential=AKID/20260101/x/execute-api/aws4_request, Signature=0"))
				require.Equal(t, tc.limit, g.passed[0]["limit"])
				policy, _ := g.passed[0]["policy"].(string)
				after := f.Want(t, 200, "POST", "/v1/limits/check",
					object{"checks": []object{{"policy": policy, "key": tc.key}}})
				decisions, _ := after.Body["decisions"].([]any)
				d, _ := decisions[0].(object)
				require.Less(t, d["remaining"], d["limit"].(float64)-1, "the key was charged")
			})
		}
	})

	t.Run("configured policy does not exist: the request is authorized and an error is logged", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.authorizer = authorizerConfig{Policy: "missing", Key: "k"}
		g, url := guard(t, f, nil)
		require.Equal(t, 200, get(t, url+"/v1/queues/q"))
		require.Equal(t, "policy_not_found", g.passed[0]["reason"])
		require.Contains(t, f.Log.String(), "without a decision")
	})

	t.Run("policy named by the request does not exist: the request is denied", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "gold", rule("r", "gcra", 2, 3_600_000))
		f.authorizer = authorizerConfig{Policy: "$request.header.x-plan", Key: "k"}
		g, url := guard(t, f, nil)
		require.Equal(t, 200, get(t, url+"/v1/queues/q", "x-plan", "gold"))
		require.Equal(t, 403, get(t, url+"/v1/queues/q", "x-plan", "silver"))
		require.Equal(t, "policy_not_found", g.answer.Context["reason"])
		require.Equal(t, 403, get(t, url+"/v1/queues/q", "x-plan", "/?"))
		require.Equal(t, 403, get(t, url+"/v1/queues/q"))
	})

	t.Run("Redis unavailable: on_unavailable decides", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.Want(t, 201, "PUT", "/v1/policies/closed",
			object{"on_unavailable": "deny", "rules": []object{rule("r", "gcra", 10, 1000)}})
		f.Want(t, 201, "PUT", "/v1/policies/open",
			object{"on_unavailable": "allow", "rules": []object{rule("r", "gcra", 10, 1000)}})
		require.NoError(t, f.redis.Server.Kill())
		for policy, status := range map[string]int{"closed": 403, "open": 200} {
			f.authorizer = authorizerConfig{Policy: policy, Key: "k"}
			g, url := guard(t, f, nil)
			require.Equal(t, status, get(t, url+"/v1/queues/q"))
			require.Equal(t, "true", g.answer.Context["degraded"])
		}
	})
}

func TestLambda(t *testing.T) {
	t.Parallel()
	f := start(t)
	handler := f.lambda(f.Handler)
	answer, err := handler(t.Context(), json.RawMessage(`{"version": "2.0", "rawPath": "/v1/policies",
		"requestContext": {"requestId": "r1", "http": {"method": "GET"}}}`))
	require.NoError(t, err)
	response, ok := answer.(events.APIGatewayV2HTTPResponse)
	require.True(t, ok)
	require.Equal(t, 200, response.StatusCode)
	require.Equal(t, "r1", response.Headers["x-request-id"], "the request ID of the gateway")
	for _, bad := range []string{`[]`, `"x"`, `{`, `{"type":"REQUEST","routeArn":"a","headers":[]}`, `{"rawPath":1}`} {
		_, err = handler(t.Context(), json.RawMessage(bad))
		require.Error(t, err, bad)
	}
}
