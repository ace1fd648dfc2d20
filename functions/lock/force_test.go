package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi"
)

const callerARN = "arn:aws:iam::123456789012:user/ann"

// invoke invokes the function as API Gateway does, for a caller with an IAM identity.
func (f *fixture) invoke(t *testing.T, method, path, body string) {
	t.Helper()
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0",
		RawPath: path,
		Body:    body,
		Headers: map[string]string{"content-type": "application/json"},
	}
	e.RequestContext.HTTP.Method, e.RequestContext.RequestID = method, "request-7"
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: callerARN},
	}
	response, err := httpapi.Lambda(f.Handler)(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode, response.Body)
}

func TestForce(t *testing.T) {
	t.Parallel()
	t.Run("logs the caller and the lock", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.invoke(t, "POST", report+"/acquire", `{}`)
		f.invoke(t, "POST", pool+"/acquire", `{"capacity":1}`)

		f.Log.Reset()
		f.invoke(t, "DELETE", report, "")
		line, _, _ := strings.Cut(f.Log.String(), "\n")
		for _, part := range []string{
			"level=WARN", "lock released by force", "request_id=request-7", "caller=" + callerARN,
			"kind=lock", "name=report", "holders=1",
		} {
			require.Contains(t, line, part)
		}
		f.Log.Reset()
		f.invoke(t, "DELETE", pool, "")
		require.Contains(t, f.Log.String(), "kind=sem name=pool holders=1")
	})
}
