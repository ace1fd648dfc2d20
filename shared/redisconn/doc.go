// Package redisconn connects to Redis: one warm client, a deadline for each call, and a circuit
// breaker that makes calls fail fast while Redis is unavailable.
//
//	conn, err := redisconn.Open(redisconn.Config{URLs: []string{"redis://localhost:6379"}})
//	…
//	reply, err := conn.Run(ctx, redis.NewScript("return ARGV[1]"), []string{"{key}"}, "value")
//
// [FromClient] takes a client that the program already has. A Conn supports one server, a Redis
// Cluster, and Valkey; a script must have all its keys in one hash slot.
//
// Errors have a [fault.Code] if the caller can act on them. [fault.StoreUnavailable] means that
// Redis is unreachable, read-only, loading or out of memory:
//
//	store_unavailable: …: dial tcp 10.0.1.7:6379: connection refused
//
// An error without a code is a defect, for example a script that does not compile.
//
// The package is pre-1.0: it may change in a minor version. The HTTP API is the stable surface.
package redisconn
