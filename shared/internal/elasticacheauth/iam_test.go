package elasticacheauth_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/internal/elasticacheauth"
)

const secretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

func signer() elasticacheauth.IAM {
	return elasticacheauth.IAM{
		Region: "eu-central-1", User: "sluice-functions", Resource: "sluice",
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", secretKey, "session/token=="),
	}
}

// signature computes a SigV4 signature by the steps of
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
func signature(host string, query url.Values) string {
	stamp := query.Get("X-Amz-Date")
	scope := stamp[:8] + "/eu-central-1/elasticache/aws4_request"
	query.Del("X-Amz-Signature")
	empty := sha256.Sum256(nil)
	canonical := strings.Join([]string{"GET", "/", strings.ReplaceAll(query.Encode(), "+", "%20"), "host:" + host, "",
		"host", hex.EncodeToString(empty[:])}, "\n")
	hashed := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + secretKey)
	for _, part := range append(strings.Split(scope, "/"),
		"AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hex.EncodeToString(hashed[:])) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func parse(t *testing.T, token string) *url.URL {
	t.Helper()
	require.NotContains(t, token, "://", "a token has no scheme")
	u, err := url.Parse("http://" + token)
	require.NoError(t, err)
	return u
}

func TestIAM(t *testing.T) {
	t.Parallel()
	t.Run("a token is a signed connect request", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			user, token, err := signer().Provide(t.Context())
			require.NoError(t, err)
			require.Equal(t, "sluice-functions", user)
			u := parse(t, token)
			q := u.Query()
			require.Equal(t, "sluice", u.Host)
			require.Equal(t, "/", u.Path)
			require.Equal(t, "connect", q.Get("Action"))
			require.Equal(t, "sluice-functions", q.Get("User"))
			require.Equal(t, "900", q.Get("X-Amz-Expires"), "ElastiCache accepts at most 15 minutes")
			now := time.Now().UTC()
			require.Equal(t, now.Format("20060102T150405Z"), q.Get("X-Amz-Date"))
			require.Equal(t, "AKIDEXAMPLE/"+now.Format("20060102")+"/eu-central-1/elasticache/aws4_request",
				q.Get("X-Amz-Credential"))
			require.Equal(t, "session/token==", q.Get("X-Amz-Security-Token"))
			require.False(t, q.Has("ResourceType"))
			require.Equal(t, signature("sluice", u.Query()), q.Get("X-Amz-Signature"))
		})
	})

	t.Run("serverless: the token names the resource type", func(t *testing.T) {
		t.Parallel()
		s := signer()
		s.Serverless = true
		_, token, err := s.Provide(t.Context())
		require.NoError(t, err)
		u := parse(t, token)
		require.Equal(t, "ServerlessCache", u.Query().Get("ResourceType"))
		require.Equal(t, signature("sluice", u.Query()), u.Query().Get("X-Amz-Signature"), "the type is signed")
	})

	t.Run("each call signs a new token", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			_, first, err := signer().Provide(t.Context())
			require.NoError(t, err)
			<-time.After(14*time.Minute + 59*time.Second)
			_, second, err := signer().Provide(t.Context())
			require.NoError(t, err)
			require.NotEqual(t, first, second)
			require.Equal(t, time.Now().UTC().Format("20060102T150405Z"), parse(t, second).Query().Get("X-Amz-Date"))
		})
	})

	t.Run("no credentials: returns an error", func(t *testing.T) {
		t.Parallel()
		s := signer()
		s.Credentials = noCredentials{}
		_, token, err := s.Provide(t.Context())
		require.ErrorContains(t, err, "no role")
		require.Empty(t, token)
	})
}

type noCredentials struct{}

func (noCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("no role")
}
