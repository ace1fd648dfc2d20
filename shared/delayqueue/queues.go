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

// FromClient returns Queues that use the caller's Redis client, with the default timeouts and
// circuit breaker of [redisconn.Config]. The caller closes the client. The error names the invalid
// field of cfg.
func FromClient(client redis.UniversalClient, cfg Config) (*Queues, error) {
	return New(redisconn.FromClient(client, redisconn.Config{}), cfg)
}

// New is like FromClient, but uses an existing connection.
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

// Shards returns the number of shards of each queue in this deployment's configuration.
func (q *Queues) Shards() int { return q.cfg.Shards }

// Ping returns nil if Redis replies. Errors: [ErrUnavailable].
func (q *Queues) Ping(ctx context.Context) error {
	return q.conn.Do(ctx, func(ctx context.Context) error { return q.conn.Client().Ping(ctx).Err() })
}

// RedisInfo returns figures of the Redis command INFO, combined over all nodes by
// [redisconn.Total]. Errors: [ErrUnavailable].
func (q *Queues) RedisInfo(ctx context.Context) (redisconn.Info, error) {
	nodes, err := q.conn.Info(ctx)
	return redisconn.Total(nodes), err
}

// place holds the key names of one shard of a queue. The hash tag in braces puts the keys in one
// hash slot. The name of a queue contains no braces.
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

// jitter returns the random fraction for the backoff, in millionths: 0 to 999 999.
func jitter() int { return rand.IntN(1_000_000) }

// rows runs a script and returns its reply, which must be an array.
func (q *Queues) rows(ctx context.Context, script redisconn.Script, keys []string, args ...any) ([]any, error) {
	reply, err := q.conn.Run(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	rows, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply from a queue script: %v", reply)
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
