package delayqueue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/redisconn"
)

// Queues keeps the jobs of any number of queues in one Redis deployment. It is safe for concurrent
// use.
type Queues struct {
	conn    *redisconn.Conn
	cfg     Config
	codec   *codec
	scripts scripts
	layouts layouts
}

// FromClient returns Queues that use a Redis client of the caller's own, with the timeouts and the
// circuit breaker that [redisconn.Config] has by default. The caller closes the client. The error
// says which field of cfg is invalid.
func FromClient(client redis.UniversalClient, cfg Config) (*Queues, error) {
	return New(redisconn.FromClient(client, redisconn.Config{}), cfg)
}

// New is FromClient for a connection that is configured already.
func New(conn *redisconn.Conn, cfg Config) (*Queues, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	return &Queues{conn: conn, cfg: cfg, codec: codec, scripts: loadScripts()}, nil
}

// Shards returns how many shards each queue has in this deployment's configuration.
func (q *Queues) Shards() int { return q.cfg.Shards }

// Ping reports whether Redis answers. Errors: [ErrUnavailable].
func (q *Queues) Ping(ctx context.Context) error {
	return q.conn.Do(ctx, func(ctx context.Context) error { return q.conn.Client().Ping(ctx).Err() })
}

// RedisInfo returns the figures of Redis INFO, combined by [redisconn.Total]. Errors:
// [ErrUnavailable].
func (q *Queues) RedisInfo(ctx context.Context) (redisconn.Info, error) {
	nodes, err := q.conn.Info(ctx)
	return redisconn.Total(nodes), err
}

// place is the names of the keys of one shard of a queue. The braces make them one hash slot: the
// name of a queue has none.
type place struct{ due, leased, awaiting, dead, done, jobs, paused string }

func placeOf(queue string, shard int) place {
	slot := "{q:" + queue + ":" + strconv.Itoa(shard) + "}"
	return place{
		due:      slot + ":due",
		leased:   slot + ":leased",
		awaiting: slot + ":awaiting",
		dead:     slot + ":dead",
		done:     slot + ":done",
		jobs:     slot + ":jobs",
		paused:   slot + ":paused",
	}
}

// jitter returns a random number of millionths, for the backoff.
func jitter() int { return rand.IntN(1_000_000) }

// rows runs a script that replies with an array.
func (q *Queues) rows(ctx context.Context, script redisconn.Script, keys []string, args ...any) ([]any, error) {
	reply, err := q.conn.Run(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	rows, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply of a queue's script: %v", reply)
	}
	return rows, nil
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
