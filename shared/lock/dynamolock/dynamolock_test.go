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
	"github.com/sluicehq/sluice/localstack/locktest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/lock/dynamolock"
)

// kumo stands in for DynamoDB, which does not run here.

func TestLocksOnDynamoDBConform(t *testing.T) {
	t.Parallel()
	cloud := awstest.Start(t)
	locktest.Run(t, dynamolock.New(cloud.DynamoDB,
		cloud.CreateTable(t, dynamolock.TableInput(redistest.Name("locks")))))
}

// A lease counts for others until a margin after its end, because their clocks may be ahead of its
// holder's.
func TestAnotherHolderIsLetInOnlyAMarginAfterTheLeaseEnded(t *testing.T) {
	t.Parallel()
	cloud := awstest.Start(t)
	l := dynamolock.New(cloud.DynamoDB, cloud.CreateTable(t, dynamolock.TableInput(redistest.Name("locks"))))
	first, err := l.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report", TTL: lock.MinTTL}))
	require.NoError(t, err)
	next, err := l.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report", Wait: lock.MaxWait}))
	require.NoError(t, err)
	require.GreaterOrEqual(t, next.AcquiredAt-first.ExpiresAt, dynamolock.Margin.Milliseconds())
}

func TestWhenDynamoDBDoesNotAnswerALockFailsWithin500Milliseconds(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
	require.NoError(t, err)
	t.Cleanup(func() { _ = hung.Close() })
	for name, endpoint := range map[string]string{"nobody listens": "http://127.0.0.1:1", "it hangs": "http://" +
		hung.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := awstest.Start(t).Config
			cfg.BaseEndpoint = aws.String(endpoint)
			l := dynamolock.New(dynamodb.NewFromConfig(cfg), "locks")
			started := time.Now()
			_, err := l.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report", Wait: lock.MaxWait}))
			require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
			require.Less(t, time.Since(started), 500*time.Millisecond)
		})
	}
}

func TestACallEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	cloud := awstest.Start(t)
	l := dynamolock.New(cloud.DynamoDB, "no-such-table")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Acquire(ctx, locktest.Request(t, lock.Request{Name: "report"}))
	require.ErrorIs(t, err, context.Canceled)
}
