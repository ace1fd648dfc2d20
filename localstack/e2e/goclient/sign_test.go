package goclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/shared/routes"
)

func TestSigning(t *testing.T) {
	t.Parallel()
	var fronted atomic.Pointer[gateway.Gateway]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fronted.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	fronted.Store(gateway.New(gateway.Config{
		Routes: routes.All(), RequireIAM: true, Credentials: map[string]string{"AKIDEXAMPLE": "secret"},
		Invoker: accepting{},
	}))
	signed := func(secret string) *client.Client {
		c, err := client.New(client.Config{
			Endpoint: s.URL, Region: "eu-central-1",
			Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", secret, "session"),
		})
		require.NoError(t, err)
		return c
	}
	ctx := t.Context()
	api := signed("secret")
	for what, err := range map[string]error{
		"a name with a colon":           second(api.Inspect(ctx, "order:42.a_b-c", client.ConsistencyStrong)),
		"a key with special characters": second(api.Peek(ctx, "login", "a b+c/ä?&=%~*'()")),
		"a body":                        second(api.Queue("q").Push(ctx, client.Job{Payload: "<ä>"})),
		"a condition":                   second(api.PutPolicy(ctx, client.Policy{Name: "p"}, client.IfMatch(`"1-ab"`))),
	} {
		require.NoError(t, err, what)
	}
	_, err := signed("wrong").Queues(ctx)
	require.ErrorIs(t, err, client.ErrForbidden)
}

func second[T any](_ T, err error) error { return err }

// accepting is a fake function that answers 200 to every event.
type accepting struct{}

func (accepting) Invoke(context.Context, string, []byte) ([]byte, error) {
	return []byte(`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"{}"}`), nil
}
