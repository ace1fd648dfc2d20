package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sluicehq/sluice/shared/routes"
)

const (
	accountID = "000000000000"
	apiID     = "local"
	stage     = "$default"
)

// event is a request in payload format 2.0.
type event struct{ events.APIGatewayV2HTTPRequest }

func newEvent(r *http.Request, route routes.Route, params map[string]string, body []byte,
	variables map[string]string) event {
	now := time.Now().UTC()
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: route.Key(), RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Cookies: cookies(r), Headers: headers(r, host, len(body)), QueryStringParameters: query(r),
		PathParameters: params, StageVariables: variables,
	}
	e.RequestContext = events.APIGatewayV2HTTPRequestContext{
		RouteKey: route.Key(), AccountID: accountID, Stage: stage, RequestID: rand.Text(), APIID: apiID,
		DomainName: r.Host, DomainPrefix: strings.SplitN(r.Host, ".", 2)[0],
		Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
		HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
			Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: host, UserAgent: r.UserAgent(),
		},
	}
	if len(body) == 0 || isText(r.Header.Get("Content-Type")) && utf8.Valid(body) {
		e.Body = string(body)
	} else {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return event{e}
}

func (e event) marshal() []byte {
	text, _ := json.Marshal(e.APIGatewayV2HTTPRequest) // the event has only types that JSON can encode
	return text
}

// headers returns the event's headers, without cookies. Names are in lower case, and repeated
// headers are joined by commas. X-Forwarded-For ends with the address of the caller.
func headers(r *http.Request, source string, length int) map[string]string {
	out := make(map[string]string, len(r.Header)+4)
	for name, values := range r.Header {
		if name != "Cookie" {
			out[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	out["x-forwarded-for"] = strings.Join(append(r.Header.Values("X-Forwarded-For"), source), ", ")
	out["x-forwarded-proto"], out["host"], out["content-length"] = "http", r.Host, strconv.Itoa(length)
	return out
}

func cookies(r *http.Request) []string {
	var out []string
	for _, line := range r.Header.Values("Cookie") {
		for part := range strings.SplitSeq(line, ";") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// query returns the event's query parameters, with repeated parameters joined by commas.
func query(r *http.Request) map[string]string {
	out := make(map[string]string)
	for name, values := range r.URL.Query() {
		out[name] = strings.Join(values, ",")
	}
	return out
}

// isText reports whether API Gateway passes a body of this media type as text rather than base64.
func isText(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return contentType == ""
	}
	switch mediaType {
	case "application/json", "application/javascript", "application/xml":
		return true
	default:
		return strings.HasPrefix(mediaType, "text/")
	}
}

// writeAnswer writes the answer of a function and reports whether the answer is valid. JSON without
// a statusCode becomes the body of a 200 response.
func writeAnswer(w http.ResponseWriter, answer []byte) bool {
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(answer, &shape); err != nil || shape["statusCode"] == nil {
		if !json.Valid(answer) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) //nolint:gosec // it is sent as JSON
		return true
	}
	var response events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(answer, &response); err != nil || response.StatusCode < 100 || response.StatusCode > 599 {
		return false
	}
	body := []byte(response.Body)
	if response.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(response.Body); err != nil {
			return false
		}
	}
	for name, value := range response.Headers {
		w.Header().Set(name, value)
	}
	for name, values := range response.MultiValueHeaders {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	for _, cookie := range response.Cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(body)
	return true
}
