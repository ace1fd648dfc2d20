package httpapi_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi"
)

func event() events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: "/v1/x/a%3Ab", RawQueryString: "q=1%2C2",
		Headers: map[string]string{"content-type": "application/json", "idempotency-key": "k1"},
		Body:    `{"n":1}`,
	}
	e.RequestContext.HTTP.Method = http.MethodPost
	e.RequestContext.RequestID = "req-1"
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:iam::1:user/ann"},
	}
	return e
}

func TestLambda(t *testing.T) {
	t.Parallel()
	t.Run("converts the event and the response", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.api.Handle("POST /v1/x/{name}", func(w http.ResponseWriter, r *http.Request) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			w.Header().Add("Vary", "a")
			w.Header().Add("Vary", "b")
			return httpapi.Write(w, http.StatusAccepted, map[string]any{
				"name": r.PathValue("name"), "q": r.URL.Query().Get("q"), "key": r.Header.Get("Idempotency-Key"),
				"caller": httpapi.Caller(r.Context()), "body": string(body),
			})
		})
		call := httpapi.Lambda(b.api)

		for name, encode := range map[string]func(*events.APIGatewayV2HTTPRequest){
			"as text": func(*events.APIGatewayV2HTTPRequest) {},
			"as base64": func(e *events.APIGatewayV2HTTPRequest) {
				e.IsBase64Encoded, e.Body = true, base64.StdEncoding.EncodeToString([]byte(e.Body))
			},
		} {
			t.Run(name, func(t *testing.T) {
				e := event()
				encode(&e)
				out, err := call(t.Context(), e)
				require.NoError(t, err)
				require.Equal(t, http.StatusAccepted, out.StatusCode)
				require.JSONEq(t,
					`{"name":"a:b","q":"1,2","key":"k1","caller":"arn:aws:iam::1:user/ann","body":"{\"n\":1}"}`,
					out.Body)
				require.Equal(t, "req-1", out.Headers["x-request-id"])
				require.Equal(t, "a, b", out.Headers["vary"])
				require.False(t, out.IsBase64Encoded)
			})
		}
	})

	t.Run("answers 504 before the deadline of the function", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.api.Handle("POST /v1/x/{name}", func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		out, err := httpapi.Lambda(b.api)(ctx, event())
		require.NoError(t, err)
		require.Equal(t, http.StatusGatewayTimeout, out.StatusCode)
		require.NoError(t, ctx.Err(), "the answer precedes the deadline of the function")
	})
}
