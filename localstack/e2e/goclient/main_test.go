// Package goclient tests the Go client against the local stack, with signed requests through its
// gateway.
package goclient

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/localstack/stack"
)

const (
	accessKey, secretKey = "AKIDEXAMPLE", "a-secret-that-only-the-gateway-knows"

	patience = 20 * time.Second // timeout of a wait; long enough for a busy machine
)

var system *stack.Stack

// TestMain starts the stack. The process exits with the result of m.Run.
func TestMain(m *testing.M) {
	var err error
	system, err = stack.Start(context.Background(), stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", LockNodes: 3, Processes: 2,
		Queues:  []string{"orders", "pay.fifo", "paused"},
		Gateway: gateway.Config{RequireIAM: true, Credentials: map[string]string{accessKey: secretKey}},
	})
	if err != nil {
		panic(err)
	}
	m.Run()
	if err := system.Close(); err != nil {
		panic(err)
	}
}

func connect(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{
		Endpoint: system.APIURL, Region: "eu-central-1",
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func name(prefix string) string { return redistest.Name(prefix) }
