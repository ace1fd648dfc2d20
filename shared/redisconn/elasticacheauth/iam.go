// Package elasticacheauth gets the credentials of Redis connections from AWS: tokens for
// ElastiCache's IAM authentication, and passwords that are kept in Secrets Manager. It stands apart
// from redisconn, which knows no AWS.
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

// MaxConnAge is how long to use a connection that authenticated with IAM, which ElastiCache closes
// after 12 hours.
const MaxConnAge = 11 * time.Hour

// tokenLife is how long ElastiCache takes a token, in seconds: no more than 15 minutes.
const tokenLife = "900"

// emptyBody is the SHA-256 of a request without a body.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// IAM signs tokens for ElastiCache's IAM authentication.
//
// A token is a presigned request (SigV4, service elasticache, action connect) without its scheme;
// see https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html. Signing needs no call
// to AWS, so each connection gets a token of its own, and none is kept until it ends.
type IAM struct {
	// Region is the cache's.
	Region string
	// User is the ElastiCache user's id, which is also its name.
	User string
	// Resource is the name of the replication group or serverless cache, in lower case.
	Resource string
	// Serverless says that it is a serverless cache.
	Serverless bool
	// Credentials sign; the role behind them needs elasticache:Connect on the cache and on the
	// user.
	Credentials aws.CredentialsProvider
}

// Provide returns the user and a token that is as old as now. It is a redisconn.Config's
// Credentials.
func (i IAM) Provide(ctx context.Context) (user, token string, err error) {
	token, err = i.token(ctx, time.Now())
	return i.User, token, err
}

func (i IAM) token(ctx context.Context, now time.Time) (string, error) {
	credentials, err := i.Credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("error getting credentials to sign a token: %w", err)
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
