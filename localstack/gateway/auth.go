package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/sluicehq/sluice/shared/routes"
)

// Authorizer is a Lambda authorizer: a function that allows or denies requests to a route.
type Authorizer struct {
	Function string
	// IdentitySource lists selection expressions such as "$request.header.x-api-key". If a request
	// has no value for one of them, the gateway answers 401 and does not invoke the authorizer.
	IdentitySource []string
}

// authenticate adds the caller of a signed request to the event and reports whether the request may
// continue. It answers 403 to an invalid signature and, with RequireIAM, to an unsigned request.
func (g *Gateway) authenticate(w http.ResponseWriter, r *http.Request, body []byte, e *event) bool {
	key, scope, signed := credential(r.Header.Get("Authorization"))
	if !signed {
		if g.cfg.RequireIAM {
			refuse(w, http.StatusForbidden, "Forbidden")
		}
		return !g.cfg.RequireIAM
	}
	if g.cfg.Credentials != nil && !g.verify(r, key, scope, body) {
		refuse(w, http.StatusForbidden, "Forbidden")
		return false
	}
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{
			AccessKey: key, AccountID: accountID, CallerID: key, UserID: key, UserARN: "arn:aws:iam::" + accountID +
				":user/" + key,
		},
	}
	return true
}

// credential parses "AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, …".
func credential(authorization string) (key string, scope []string, ok bool) {
	_, rest, found := strings.Cut(authorization, "AWS4-HMAC-SHA256 Credential=")
	if !found {
		return "", nil, false
	}
	value, _, _ := strings.Cut(rest, ",")
	parts := strings.Split(strings.TrimSpace(value), "/")
	if len(parts) != 5 || parts[0] == "" {
		return "", nil, false
	}
	return parts[0], parts[1:], true
}

// verify recomputes the SigV4 signature over the request's SignedHeaders with the secret of the
// access key, and compares the two signatures. See
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
func (g *Gateway) verify(r *http.Request, key string, scope []string, body []byte) bool {
	secret, ok := g.cfg.Credentials[key]
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if !ok || err != nil || time.Since(at).Abs() > 5*time.Minute {
		return false
	}
	given := r.Header.Get("Authorization")
	_, rest, _ := strings.Cut(given, "SignedHeaders=")
	names, _, _ := strings.Cut(rest, ",")
	again := r.Clone(r.Context())
	again.Header = make(http.Header)
	again.URL.Host, again.URL.Scheme = r.Host, "https"
	again.ContentLength = int64(len(body))
	for name := range strings.SplitSeq(names, ";") {
		if values := r.Header.Values(name); len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: secret,
		SessionToken: r.Header.Get("X-Amz-Security-Token")}
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), scope[2], scope[1],
		at); err != nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(again.Header.Get("Authorization")), []byte(given)) == 1
}

// authorize invokes the route's authorizer, if there is one. It adds the authorizer's context to
// the event and reports whether the request may continue.
func (g *Gateway) authorize(w http.ResponseWriter, r *http.Request, route routes.Route, e *event) bool {
	authorizer, ok := g.cfg.Authorizers[route.Key()]
	if !ok {
		return true
	}
	var identity []string
	for _, source := range authorizer.IdentitySource {
		value := selection(source, e)
		if value == "" {
			refuse(w, http.StatusUnauthorized, "Unauthorized")
			return false
		}
		identity = append(identity, value)
	}
	answer, err := g.cfg.Invoker.Invoke(r.Context(), authorizer.Function, authorizerEvent(e, identity))
	var decision events.APIGatewayV2CustomAuthorizerSimpleResponse
	if err != nil || json.Unmarshal(answer, &decision) != nil {
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
		return false
	}
	if !decision.IsAuthorized {
		refuse(w, http.StatusForbidden, "Forbidden")
		return false
	}
	if e.RequestContext.Authorizer == nil {
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{}
	}
	e.RequestContext.Authorizer.Lambda = decision.Context
	return true
}

func authorizerEvent(e *event, identity []string) []byte {
	c := e.RequestContext
	text, _ := json.Marshal(events.APIGatewayV2CustomAuthorizerV2Request{
		Version: "2.0", Type: "REQUEST", RouteArn: "arn:aws:execute-api:local:" + accountID + ":" + apiID + "/" +
			stage + "/" + c.HTTP.Method + c.HTTP.Path,
		IdentitySource: identity, RouteKey: e.RouteKey, RawPath: e.RawPath, RawQueryString: e.RawQueryString,
		Cookies: e.Cookies,
		Headers: e.Headers, QueryStringParameters: e.QueryStringParameters, PathParameters: e.PathParameters,
		StageVariables: e.StageVariables, RequestContext: c,
	})
	return text
}

// selection returns the value that an identity source selects, or "" if there is none.
func selection(source string, e *event) string {
	if name, ok := strings.CutPrefix(source, "$request.header."); ok {
		return e.Headers[strings.ToLower(name)]
	}
	if name, ok := strings.CutPrefix(source, "$request.querystring."); ok {
		return e.QueryStringParameters[name]
	}
	if source == "$context.identity.sourceIp" {
		return e.RequestContext.HTTP.SourceIP
	}
	return ""
}
