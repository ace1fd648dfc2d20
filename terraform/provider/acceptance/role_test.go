package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// role is an IAM role of a fake AWS STS. AssumeRole returns credentials that the gateway accepts.
type role struct{ arn, url string }

// newRole starts a fake AWS STS for the duration of the test.
func newRole(t *testing.T) role {
	t.Helper()
	r := role{arn: "arn:aws:iam::123456789012:role/limits"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if err := q.ParseForm(); err != nil || q.Form.Get("Action") != "AssumeRole" || q.Form.Get("RoleArn") != r.arn ||
			q.Form.Get("ExternalId") != "x-1" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><Arn>%[1]s/s</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>%[3]s</SecretAccessKey>
<SessionToken>t</SessionToken><Expiration>%[4]s</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>`,
			r.arn, accessKey, secretKey, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}
