package delayqueue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/redisconn"
)

// Config says how the queues are kept.
type Config struct {
	// Shards is how many parts a queue has. More spread over a cluster's nodes. Default 4. It may
	// be changed at any time.
	Shards int
	// DedupWindow is how long a finished job can be read and its id not be used again. Default one
	// hour.
	DedupWindow time.Duration
	// DeadRetention is how long a dead job waits to be redriven. Default 14 days.
	DeadRetention time.Duration
	// MaxLapses is how many leases of a job may lapse in a row before it is dead: a job that kills
	// every dispatcher must not do so for ever. Default 100.
	MaxLapses int
}

func (c Config) withDefaults() Config {
	if c.Shards == 0 {
		c.Shards = 4
	}
	if c.DedupWindow == 0 {
		c.DedupWindow = time.Hour
	}
	if c.DeadRetention == 0 {
		c.DeadRetention = 14 * 24 * time.Hour
	}
	if c.MaxLapses == 0 {
		c.MaxLapses = 100
	}
	return c
}

// MaxShards bounds the parts of a queue.
const MaxShards = 256

//go:embed scripts/*.lua
var sources embed.FS

type scripts struct {
	enqueue, claim, accept, giveBack, settle, change, maintain, stats, redrive, settled, takeOver *redis.Script
}

func loadScripts() (scripts, error) {
	var err error
	load := func(name string) *redis.Script {
		text, failed := sources.ReadFile("scripts/" + name + ".lua")
		err = errors.Join(err, failed)
		return redis.NewScript(string(text))
	}
	s := scripts{
		enqueue: load("enqueue"), claim: load("claim"), accept: load("accept"), giveBack: load("giveback"),
		settle: load("settle"),
		change: load("change"), maintain: load("maintain"), stats: load("stats"), redrive: load("redrive"),
		settled: load("settled"), takeOver: load("takeover"),
	}
	return s, err
}

// Queues keeps jobs on one Redis deployment.
type Queues struct {
	conn    *redisconn.Conn
	cfg     Config
	codec   *codec
	scripts scripts
	layouts layouts
}

// New makes Queues.
func New(conn *redisconn.Conn, cfg Config) (*Queues, error) {
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	loaded, err := loadScripts()
	if err != nil {
		return nil, fmt.Errorf("error loading the scripts: %w", err)
	}
	return &Queues{conn: conn, cfg: cfg.withDefaults(), codec: codec, scripts: loaded}, nil
}

// Shards is how many parts each queue has.
func (q *Queues) Shards() int { return q.cfg.Shards }

// place names the keys of one shard of a queue. A queue's name has no braces, so the hash tag is
// all of {q:<queue>:<shard>}.
type place struct{ due, leased, awaiting, dead, done, jobs, paused string }

func placeOf(queue string, shard int) place {
	base := "{q:" + queue + ":" + strconv.Itoa(shard) + "}"
	return place{
		due: base + ":due", leased: base + ":leased", awaiting: base + ":awaiting", dead: base + ":dead", done: base +
			":done",
		jobs: base + ":jobs", paused: base + ":paused",
	}
}

// wakeChannel tells dispatchers that a shard has a new first job; the message is "<queue> <shard>".
const wakeChannel = "sluice:wake"

func wakeMessage(queue string, shard int) string { return queue + " " + strconv.Itoa(shard) }

// jitter is a random part of a million.
func jitter() int { return rand.IntN(1_000_000) }

// Ping tells whether Redis answers.
func (q *Queues) Ping(ctx context.Context) error {
	return q.conn.Do(ctx, func(ctx context.Context) error { return q.conn.Client().Ping(ctx).Err() })
}

// RedisInfo returns the figures of Redis INFO, combined by [redisconn.Total]. Errors:
// store_unavailable.
func (q *Queues) RedisInfo(ctx context.Context) (redisconn.Info, error) {
	nodes, err := q.conn.Info(ctx)
	return redisconn.Total(nodes), err
}

// rows runs a script whose reply is an array.
func (q *Queues) rows(ctx context.Context, script *redis.Script, keys []string, args ...any) ([]any, error) {
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
