// Package awsenv is the AWS configuration of a Lambda function: what Lambda puts into the
// environment, and nothing else.
//
// The SDK's own loader also knows profiles, SSO, web identities, containers and instance metadata.
// A function never has those, and they are a tenth of its size.
package awsenv

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Config reads AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN through
// getenv; they are as long valid as the execution environment lives. AWS_ENDPOINT_URL, when set, is
// where every service is: a local AWS.
func Config(getenv func(string) string) (aws.Config, error) {
	region, id, secret := getenv("AWS_REGION"), getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	if region == "" || id == "" || secret == "" {
		return aws.Config{},
			errors.New("AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are needed: Lambda sets them")
	}
	cfg := aws.Config{
		Region: region,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider(id, secret,
			getenv("AWS_SESSION_TOKEN"))),
	}
	if endpoint := getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	return cfg, nil
}
