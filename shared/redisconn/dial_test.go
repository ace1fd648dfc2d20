package redisconn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/redisconn"
)

func TestDialer(t *testing.T) {
	t.Parallel()
	// Servers, proxies and load balancers close idle connections. A frozen Lambda function does not
	// notice it.
	t.Run("replaces a connection that the server closed while it was idle", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		c := open(t, redisconn.Config{URLs: []string{r.URL}, CallTimeout: 5 * time.Second})
		for range 3 {
			_, err := c.Run(t.Context(), write(), []string{"{k}"})
			require.NoError(t, err)
			require.NoError(t, r.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
			<-time.After(300 * time.Millisecond) // a pause, as between two invocations
		}
		_, err := c.Run(t.Context(), write(), []string{"{k}"})
		require.NoError(t, err)
	})
}
