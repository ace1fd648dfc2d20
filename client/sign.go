package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
)

// signer signs requests with AWS Signature Version 4.
//
// See https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
type signer struct {
	v4      *v4.Signer
	service string

	mu          sync.Mutex
	credentials aws.CredentialsProvider
	region      string
}

func newSigner(cfg Config, host string) *signer {
	service, region := serviceOf(host)
	if region == "" {
		region = cfg.Region
	}
	s := &signer{v4: v4.NewSigner(), service: service, region: region}
	if cfg.Credentials != nil {
		s.credentials = aws.NewCredentialsCache(cfg.Credentials)
	}
	return s
}

// serviceOf derives the service and the region to sign for from the host names that AWS assigns:
// "<id>.execute-api.<region>.amazonaws.com" and "<id>.lambda-url.<region>.on.aws". Any other host
// is a custom domain of API Gateway, which has no region in its name.
func serviceOf(host string) (service, region string) {
	service = "execute-api"
	labels := strings.Split(host, ".")
	for i, label := range labels[:len(labels)-1] {
		switch label {
		case "execute-api":
			return service, labels[i+1]
		case "lambda-url":
			return "lambda", labels[i+1]
		}
	}
	return service, ""
}

// sign signs the request r with the given body.
func (s *signer) sign(ctx context.Context, r *http.Request, body []byte) error {
	provider, region, err := s.identity(ctx)
	if err != nil {
		return err
	}
	credentials, err := provider.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("error getting AWS credentials: %w", err)
	}

	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if err := s.v4.SignHTTP(ctx, credentials, r, hash, s.service, region, time.Now()); err != nil {
		return fmt.Errorf("error signing the request: %w", err)
	}
	return nil
}

// identity returns the credentials and the region to sign with. If one of them is not set yet,
// identity reads it from the default configuration of the AWS SDK. If the configuration cannot be
// loaded, the next request tries again.
func (s *signer) identity(ctx context.Context) (aws.CredentialsProvider, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.credentials == nil || s.region == "" {
		cfg, err := awsconfig.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, "", fmt.Errorf("error loading the AWS configuration: %w", err)
		}
		if s.credentials == nil {
			s.credentials = cfg.Credentials
		}
		if s.region == "" {
			s.region = cfg.Region
		}
	}

	if s.region == "" {
		return nil, "", errors.New("no AWS region: set Region, or the environment variable AWS_REGION")
	}
	return s.credentials, s.region, nil
}
