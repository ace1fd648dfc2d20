// Package elasticacheauth provides credentials for Redis connections: tokens for the IAM
// authentication of ElastiCache, and passwords from Secrets Manager. It is separate from redisconn
// so that redisconn does not depend on the AWS SDK.
package elasticacheauth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// MaxConnAge is the maximum age of a connection that authenticated with IAM. ElastiCache closes
// such a connection after 12 hours.
const MaxConnAge = 11 * time.Hour

// tokenLife is the lifetime of a token in seconds. ElastiCache accepts at most 15 minutes.
const tokenLife = "900"

// emptyBody is the SHA-256 of an empty request body.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// IAM signs tokens for the IAM authentication of ElastiCache.
//
// A token is a presigned request (SigV4, service "elasticache", action "connect") without its
// scheme; see https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html. Signing makes
// no call to AWS, so each connection gets a new token and no token is cached.
type IAM struct {
	// Region is the region of the cache.
	Region string
	// User is the ID of the ElastiCache user, which must equal its name.
	User string
	// Resource is the name of the replication group or serverless cache, in lower case.
	Resource string
	// Serverless marks a serverless cache.
	Serverless bool
	// Credentials provides the keys that sign the tokens. The role of the keys needs
	// elasticache:Connect on the cache and on the user.
	Credentials aws.CredentialsProvider
}

// Provide returns the user and a new token, for redisconn.Config.Credentials.
func (i IAM) Provide(ctx context.Context) (user, token string, err error) {
	token, err = i.token(ctx, time.Now())
	return i.User, token, err
}

func (i IAM) token(ctx context.Context, now time.Time) (string, error) {
	credentials, err := i.Credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("error getting the credentials that sign a token: %w", err)
	}
	query := url.Values{"Action": {"connect"}, "User": {i.User}, "X-Amz-Expires": {tokenLife}}
	if i.Serverless {
		query.Set("ResourceType", "ServerlessCache")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.Resource+"/?"+query.Encode(),
		http.NoBody)
	if err != nil {
		return "", fmt.Errorf("error making a token for the cache %q: %w", i.Resource, err)
	}
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, request, emptyBody, "elasticache", i.Region, now)
	if err != nil {
		return "", fmt.Errorf("error signing a token: %w", err)
	}
	return strings.TrimPrefix(signed, "http://"), nil
}
