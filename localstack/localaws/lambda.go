package localaws

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/sluicehq/sluice/localstack/gateway"
)

// CreateFunction registers a function, so that processes can poll for its invocations.
func (c *Server) CreateFunction(ctx context.Context, name string, timeout time.Duration) error {
	client := lambda.NewFromConfig(c.Config())
	_, err := client.CreateFunction(ctx, &lambda.CreateFunctionInput{
		FunctionName: aws.String(name), Role: aws.String("arn:aws:iam::000000000000:role/local"),
		Runtime: types.RuntimeProvidedal2023,
		Handler: aws.String("bootstrap"), Timeout: aws.Int32(int32(timeout / time.Second)),
		Code: &types.FunctionCode{ZipFile: []byte("local")},
	})
	if err != nil {
		return fmt.Errorf("error creating function %s: %w", name, err)
	}
	return nil
}

// Invoker invokes functions by name and waits for their answers. It implements gateway.Invoker.
type Invoker struct {
	endpoint string
	client   *http.Client
}

// NewInvoker returns an Invoker.
func (c *Server) NewInvoker() *Invoker {
	return &Invoker{endpoint: c.kumo.URL, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}}
}

// Invoke implements gateway.Invoker. A *gateway.FunctionError means that the function failed; any
// other error means that kumo returned no result.
func (i *Invoker) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	target := i.endpoint + "/2015-03-31/functions/" + function + "/invocations"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("error invoking %s: %w", function, err)
	}
	// kumo reads the service name from the signature's scope. It does not verify the signature.
	r.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=local/20260101/"+Region+"/lambda/aws4_request, SignedHeaders=host, Signature=0")
	response, err := i.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("error invoking %s: %w", function, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("error reading the answer of %s: %w", function, err)
	}
	if response.Header.Get("X-Amz-Function-Error") != "" {
		return nil, &gateway.FunctionError{Payload: answer}
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("error invoking %s: %s: %s", function, response.Status, bytes.TrimSpace(answer))
	}
	return answer, nil
}
