package redisconn_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// A program that already has a Redis client makes a Conn from it.
func ExampleFromClient() {
	ctx := context.Background()
	server, err := redisserver.Start(ctx, redisserver.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()

	client := redis.NewClient(&redis.Options{
		Addr:                  server.Addr(),
		MaxRetries:            -1,   // the caller decides which calls are safe to send twice
		ContextTimeoutEnabled: true, // a call ends at the deadline of its context
	})
	conn := redisconn.FromClient(client, redisconn.Config{})
	defer func() { _ = conn.Close() }()

	add := redis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
	reply, err := conn.Run(ctx, add, []string{"{visits}"}, 3)
	fmt.Println(reply, err, conn.BreakerOpen())
	// Output: 3 <nil> false
}
