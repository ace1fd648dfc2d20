package redistest

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/localstack/redisserver"
)

// ForExample starts a server for an Example function, which has no [testing.TB], and returns a
// client. stop closes the client and the server. ForExample panics if the server does not start.
func ForExample() (client redis.UniversalClient, stop func()) {
	s, err := redisserver.Start(context.Background(), redisserver.Options{})
	if err != nil {
		panic(err)
	}

	client = newClient([]string{s.Addr()}, false)
	return client, func() { _, _ = client.Close(), s.Close() }
}
