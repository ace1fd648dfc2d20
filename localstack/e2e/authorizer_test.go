package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/localstack/localaws"
	"github.com/sluicehq/sluice/shared/routes"
)

// functions invokes the functions of the system through the Lambda API.
type functions struct{ client *lambda.Client }

func (f functions) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	out, err := f.client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(function), Payload: payload})
	if err != nil {
		return nil, err
	}
	if out.FunctionError != nil {
		return nil, &gateway.FunctionError{Payload: out.Payload}
	}
	return out.Payload, nil
}

// guardedAPI serves the system through a second gateway and returns the gateway's URL. In this
// gateway, the function "limit" is the authorizer of the given route.
func guardedAPI(t *testing.T, route string, variables map[string]string) string {
	t.Helper()
	client := lambda.New(lambda.Options{
		Region: localaws.Region, BaseEndpoint: aws.String(system.AWSEndpoint),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	server := httptest.NewServer(gateway.New(gateway.Config{
		Invoker: functions{client}, Routes: routes.All(), StageVariables: variables,
		Authorizers: map[string]gateway.Authorizer{route: {Function: "limit",
			IdentitySource: []string{"$request.header.x-api-key"}}},
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAuthorizer(t *testing.T) {
	t.Parallel()
	name := put(t, object{"rules": []object{rule("hourly", "sliding_window", 3, 3_600_000)}})
	url := guardedAPI(t, "GET /v1/queues/{queue}",
		map[string]string{"sluice_policy": name, "sluice_key": "$request.header.x-api-key"})
	ask := func(key string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/queues/orders", nil)
		require.NoError(t, err)
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		w, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		return w.StatusCode
	}
	require.Equal(t, []int{200, 200, 200, 403, 403}, []int{ask("ann"), ask("ann"), ask("ann"), ask("ann"), ask("ann")},
		"the gateway answers 403 if the authorizer denies")
	require.Equal(t, 200, ask("bob"))
	require.Equal(t, 401, ask(""), "without an API key, the gateway invokes no function")
	require.EqualValues(t, 0, want(t, 200, "GET", "/v1/limits/"+name+"?key=ann", nil).number("remaining"),
		"the API must report the same count as the authorizer")
}
