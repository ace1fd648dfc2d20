package dynamolock_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/internal/locktest"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/lock/dynamolock"
)

// open returns a store that uses kumo, an emulator of DynamoDB.
func open(t *testing.T) *dynamolock.Store {
	t.Helper()
	cloud := awstest.Start(t)
	table := cloud.CreateTable(t, dynamolock.TableInput(redistest.Name("locks")))
	return dynamolock.New(cloud.DynamoDB, table)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := open(t)
	locktest.Run(t, s)
	locktest.RunWithoutSemaphores(t, s)
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	t.Run("expired lease: the next lease starts at least 500 ms after its end", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		first, err := s.Acquire(t.Context(), lock.Request{Name: "report", TTL: lock.MinTTL})
		require.NoError(t, err)
		next, err := s.Acquire(t.Context(), lock.Request{Name: "report", Wait: lock.MaxWait})
		require.NoError(t, err)
		require.GreaterOrEqual(t, next.AcquiredAt.Sub(first.ExpiresAt), dynamolock.Margin)
	})

	t.Run("canceled context: returns its error", func(t *testing.T) {
		t.Parallel()
		s := dynamolock.New(awstest.Start(t).DynamoDB, "no-such-table")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Acquire(ctx, lock.Request{Name: "report"})
		require.ErrorIs(t, err, context.Canceled)
	})

	hanging, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
	require.NoError(t, err)
	t.Cleanup(func() { _ = hanging.Close() })
	for name, endpoint := range map[string]string{
		"refused connection: fails within 500 ms":          "http://127.0.0.1:1",
		"endpoint that never replies: fails within 500 ms": "http://" + hanging.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := awstest.Start(t).Config
			cfg.BaseEndpoint = aws.String(endpoint)
			s := dynamolock.New(dynamodb.NewFromConfig(cfg), "locks")
			started := time.Now()
			_, err := s.Acquire(t.Context(), lock.Request{Name: "report", Wait: lock.MaxWait})
			require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
			require.Less(t, time.Since(started), 500*time.Millisecond)
		})
	}
}
