package ratelimit

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/internal/luascript"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/redisconn"
)

//go:embed scripts
var scripts embed.FS

var (
	bucketScript  = luascript.Load(scripts, "scripts/bucket.lua")
	bucketsScript = luascript.Load(scripts, "scripts/buckets.lua")
	decideScript  = luascript.Load(scripts, "scripts/decide.lua")
)

// operation is the first argument of decide.lua.
type operation string

const (
	opCheck  operation = "check"
	opPeek   operation = "peek"
	opRefund operation = "refund"

	// opLog is an opCheck of a single sliding_window rule. decide/fast.lua decides it if it can.
	opLog operation = "log"
)

// redisStore holds the state in Redis. One script call decides all charges of a hash slot.
type redisStore struct {
	conn *redisconn.Conn
	// now replaces the server's clock in tests.
	now func() time.Time
	// noFastPath disables bucket.lua, buckets.lua and decide/fast.lua, in tests.
	noFastPath bool
}

func newRedisStore(conn *redisconn.Conn) *redisStore { return &redisStore{conn: conn} }

// stateKey returns the Redis key of a charge's state. A policy's name contains no "/", so every
// pair of policy and key has its own state key. The hash tag ends at the first "}", which may be
// part of the caller's key. All Redis keys of a pair have the same text before it, and therefore
// the same hash slot.
func stateKey(c charge) string { return "{rl:" + c.policy + "/" + c.key + "}" }

// ringKey returns the Redis key of the ring in which a sliding_window rule stores its charges.
func ringKey(c charge, rule string) string { return stateKey(c) + ":" + rule }

// decide decides charges whose keys share a hash slot.
func (s *redisStore) decide(ctx context.Context, op operation, charges []charge) ([]verdict, bool, error) {
	if op == opCheck && len(charges) == 1 && !s.noFastPath {
		if v, decided, err := s.decideBuckets(ctx, charges[0]); decided || err != nil {
			return []verdict{v}, v.fits || charges[0].Mode == policy.Shadow, err
		}
	}

	keys, args := s.arguments(op, charges)
	reply, err := s.conn.Run(ctx, decideScript, keys, args...)
	if err != nil {
		return nil, false, err
	}
	values, ok := reply.([]any)
	if !ok {
		return nil, false, fmt.Errorf("error reading the reply of decide.lua: unexpected %v", reply)
	}

	return verdicts(charges, values)
}

// arguments returns the KEYS and ARGV of decide.lua; the script documents them.
func (s *redisStore) arguments(op operation, charges []charge) ([]string, []any) {
	keys := make([]string, 0, 2*len(charges))
	args := make([]any, 0, 4+len(charges)*10)
	args = append(args, string(s.fastPath(op, charges)), s.clock(), len(charges), invalidChannel)
	for _, c := range charges {
		keys = append(keys, stateKey(c))
		enforced := 1
		if c.Mode == policy.Shadow {
			enforced = 0
		}
		args = append(args, c.policy+"/"+c.key, c.cost, enforced, len(c.Rules))
		for _, r := range c.Rules {
			if r.Algorithm == policy.SlidingWindow {
				keys = append(keys, ringKey(c, r.Name))
			}
			args = append(args, signature("", r), r.Limit, r.Window.Microseconds(), r.Capacity(),
				r.Tick().Microseconds())
		}
	}

	return keys, args
}

// clock returns the time that a test has set, in microseconds, or "" for the server's clock.
func (s *redisStore) clock() string {
	if s.now == nil {
		return ""
	}

	return strconv.FormatInt(s.now().UnixMicro(), 10)
}

// fastPath returns opLog for a check that decide/fast.lua supports. Otherwise it returns op
// unchanged.
func (s *redisStore) fastPath(op operation, charges []charge) operation {
	if op != opCheck || len(charges) != 1 || s.noFastPath {
		return op
	}
	if rules := charges[0].Rules; len(rules) == 1 && rules[0].Algorithm == policy.SlidingWindow {
		return opLog
	}

	return op
}

// signature returns the prefix followed by the definition of a rule. The rule's line in the state
// starts with its definition; a line that starts differently was written under a different
// definition.
func signature(prefix string, r policy.Rule) string {
	b := make([]byte, 0, 96)
	b = append(append(append(append(append(b, prefix...), r.Name...), ' '), r.Algorithm...), ' ')
	for _, n := range [...]int64{r.Limit, r.Window.Microseconds(), r.Tick().Microseconds()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}

	return string(b)
}

// verdicts parses the reply of decide.lua.
func verdicts(charges []charge, values []any) ([]verdict, bool, error) {
	want := 1
	for _, c := range charges {
		want += 1 + 3*len(c.Rules)
	}
	if len(values) != want {
		return nil, false, fmt.Errorf("error reading the reply of decide.lua: %d numbers, want %d", len(values), want)
	}

	next := func() int64 {
		n, _ := values[0].(int64)
		values = values[1:]
		return n
	}
	allowed := next() == 1
	out := make([]verdict, len(charges))
	for i, c := range charges {
		out[i] = verdict{fits: next() == 1, rules: make([]numbers, len(c.Rules))}
		for j := range c.Rules {
			out[i].rules[j] = numbers{remaining: next(), reset: next(), retry: next()}
		}
	}

	return out, allowed, nil
}

// reset deletes the state of a key. It then publishes the key, so that the other instances remove
// its cached denials.
func (s *redisStore) reset(ctx context.Context, c charge) error {
	keys := []string{stateKey(c)}
	for _, r := range c.Rules {
		keys = append(keys, ringKey(c, r.Name))
	}

	return s.conn.Do(ctx, func(ctx context.Context) error {
		err := s.conn.Client().Del(ctx, keys...).Err()
		if err == nil {
			err = s.conn.Client().Publish(ctx, invalidChannel, c.policy+"/"+c.key).Err()
		}
		return err
	})
}

// slot returns the hash slot of a charge's keys: in a cluster, all keys of a script call must be in
// one slot. Outside a cluster, slot returns "" for every charge.
func (s *redisStore) slot(c charge) string {
	if _, cluster := s.conn.Client().(*redis.ClusterClient); !cluster {
		return ""
	}

	return strconv.Itoa(redisconn.Slot(stateKey(c)))
}
