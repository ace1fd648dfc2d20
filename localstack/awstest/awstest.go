// Package awstest starts kumo, a local fake of AWS, for tests. Package redistest starts Redis
// servers for tests.
package awstest

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/localstack/localaws"
)

// AWS is a running local AWS. All instances in a process share their state, so give each queue and
// table a unique name.
type AWS struct {
	Config   aws.Config
	Endpoint string
	SQS      *sqs.Client
	DynamoDB *dynamodb.Client
}

// Start starts a local AWS for a test.
func Start(t testing.TB) *AWS {
	t.Helper()
	c, err := localaws.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	cfg := c.Config()
	return &AWS{Config: cfg, Endpoint: c.Endpoint, SQS: sqs.NewFromConfig(cfg), DynamoDB: dynamodb.NewFromConfig(cfg)}
}

// CreateQueue creates a queue and returns its URL.
func (a *AWS) CreateQueue(t testing.TB, name string, attributes map[string]string) string {
	t.Helper()
	out, err := a.SQS.CreateQueue(context.Background(),
		&sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.QueueUrl)
}

// CreateTable creates a table and returns its name.
func (a *AWS) CreateTable(t testing.TB, input *dynamodb.CreateTableInput) string {
	t.Helper()
	if _, err := a.DynamoDB.CreateTable(context.Background(), input); err != nil {
		t.Fatal(err)
	}
	return aws.ToString(input.TableName)
}
