package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/gateway"
)

const keyID = "AKIDEXAMPLE"

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	t.Run("verifies signatures", func(t *testing.T) {
		t.Parallel()
		valid := aws.Credentials{AccessKeyID: keyID, SecretAccessKey: "right"}
		for name, tc := range map[string]struct {
			credentials aws.Credentials
			age         time.Duration
			change      func(*http.Request)
			status      int
		}{
			"accepts a valid signature": {valid, 0, func(*http.Request) {}, 200},
			"refuses a wrong secret": {aws.Credentials{AccessKeyID: keyID, SecretAccessKey: "wrong"}, 0,
				func(*http.Request) {}, 403},
			"refuses an unknown key": {aws.Credentials{AccessKeyID: "OTHER", SecretAccessKey: "right"}, 0,
				func(*http.Request) {}, 403},
			"refuses an old signature": {valid, 6 * time.Minute, func(*http.Request) {}, 403},
			"refuses a changed query":  {valid, 0, func(r *http.Request) { r.URL.RawQuery = "limit=2" }, 403},
			"refuses a changed path": {valid, 0, func(r *http.Request) {
				r.URL.Path = "/v1/queues/other/pause"
			}, 403},
			"refuses a changed signed header": {valid, 0, func(r *http.Request) {
				r.Header.Set("X-Amz-Date", time.Now().Add(time.Minute).UTC().Format("20060102T150405Z"))
			}, 403},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url := serve(t, &function{answer: ok}, func(c *gateway.Config) {
					c.RequireIAM, c.Credentials = true, map[string]string{keyID: "right"}
				})
				body := []byte(`{"until":null}`)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/queues/a%20b/pause?limit=1",
					bytes.NewReader(body))
				require.NoError(t, err)
				sum := sha256.Sum256(body)
				require.NoError(t, v4.NewSigner().SignHTTP(t.Context(), tc.credentials, r, hex.EncodeToString(sum[:]),
					"execute-api", "eu-central-1", time.Now().Add(-tc.age)))
				tc.change(r)
				w, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				require.NoError(t, w.Body.Close())
				require.Equal(t, tc.status, w.StatusCode)
			})
		}
	})

	t.Run("refuses a body that was changed", func(t *testing.T) {
		t.Parallel()
		url := serve(t, &function{answer: ok}, func(c *gateway.Config) {
			c.Credentials = map[string]string{keyID: "right"}
		})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/queues/q/pause",
			bytes.NewReader([]byte(`{"a":2}`)))
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(`{"a":1}`))
		require.NoError(t, v4.NewSigner().SignHTTP(t.Context(),
			aws.Credentials{AccessKeyID: keyID, SecretAccessKey: "right"}, r,
			hex.EncodeToString(sum[:]), "execute-api", "eu-central-1", time.Now()))
		w, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		require.Equal(t, http.StatusForbidden, w.StatusCode)
	})
}

// authorizer is a fake function that also acts as the authorizer "guard".
type authorizer struct {
	function

	request  events.APIGatewayV2CustomAuthorizerV2Request
	decision string
}

func (a *authorizer) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	if name != "guard" {
		return a.function.Invoke(ctx, name, payload)
	}
	if err := json.Unmarshal(payload, &a.request); err != nil {
		return nil, err
	}
	return []byte(a.decision), nil
}

// guarded serves a gateway in which GET /v1/queues has an authorizer, and returns its URL.
func guarded(t *testing.T, a *authorizer) string {
	t.Helper()
	return serve(t, &a.function, func(c *gateway.Config) {
		c.Invoker = a
		c.Authorizers = map[string]gateway.Authorizer{"GET /v1/queues": {
			Function: "guard", IdentitySource: []string{"$request.header.x-api-key", "$request.querystring.tenant",
				"$context.identity.sourceIp"},
		}}
	})
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	t.Run("allows: invokes the function with the authorizer's context", func(t *testing.T) {
		t.Parallel()
		a := &authorizer{function: function{answer: ok}, decision: `{"isAuthorized":true,"context":{"remaining":4}}`}
		w, _ := send(t, http.MethodGet, guarded(t, a)+"/v1/queues?tenant=t1", nil, "X-Api-Key", "k1")
		require.Equal(t, http.StatusOK, w.StatusCode)
		require.Equal(t, "2.0", a.request.Version)
		require.Equal(t, "REQUEST", a.request.Type)
		require.Equal(t, []string{"k1", "t1", "127.0.0.1"}, a.request.IdentitySource)
		require.Equal(t, "GET /v1/queues", a.request.RouteKey)
		require.Equal(t, map[string]any{"remaining": 4.0}, a.invoked[0].RequestContext.Authorizer.Lambda,
			"the function must receive the authorizer's context")
	})

	t.Run("denies or fails: answers 403 or 500 without invoking the function", func(t *testing.T) {
		t.Parallel()
		for decision, status := range map[string]int{`{"isAuthorized":false}`: 403, `oops`: 500} {
			a := &authorizer{decision: decision}
			w, _ := send(t, http.MethodGet, guarded(t, a)+"/v1/queues?tenant=t1", nil, "X-Api-Key", "k1")
			require.Equal(t, status, w.StatusCode)
			require.Empty(t, a.invoked)
		}
	})

	t.Run("no identity: answers 401 without invoking anything", func(t *testing.T) {
		t.Parallel()
		a := &authorizer{decision: `{"isAuthorized":true}`}
		w, text := send(t, http.MethodGet, guarded(t, a)+"/v1/queues", nil, "X-Api-Key", "k1")
		require.Equal(t, http.StatusUnauthorized, w.StatusCode)
		require.JSONEq(t, `{"message":"Unauthorized"}`, text)
		require.Empty(t, a.request.Type)
	})
}
