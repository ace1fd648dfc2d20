package ratelimit

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/redisconn"
)

var (
	//go:embed scripts/bucket.lua
	bucketSource string
	//go:embed scripts/buckets.lua
	bucketsSource string
	//go:embed scripts/quick.lua
	quickSource string
	//go:embed scripts/decide.lua
	decideSource string

	bucketScript  = redis.NewScript(bucketSource)
	bucketsScript = redis.NewScript(bucketsSource)
	decideScript  = redis.NewScript(quickSource + decideSource)
)

// operation is what decide.lua does.
type operation string

const (
	opCheck  operation = "check"
	opPeek   operation = "peek"
	opRefund operation = "refund"

	// opLog is a check that the front of the script may answer.
	opLog operation = "log"
)

// Redis is the engine that counts in Redis: one script call for all checks of one hash slot.
type Redis struct {
	conn *redisconn.Conn
	// now replaces the server's clock in tests: microseconds as text.
	now func() string
	// whole keeps tests from the shorter scripts.
	whole bool
}

// NewRedis makes the engine.
func NewRedis(conn *redisconn.Conn) *Redis {
	return &Redis{conn: conn, now: func() string { return "" }}
}

// stateKey is the key of a policy and a user's key. A policy's name has no "/", so no two pairs
// share one; the hash tag ends at the first "}", which may be the user's own: all keys of one pair
// share what is before it.
func stateKey(c Check) string { return "{rl:" + c.Policy + "/" + c.Key + "}" }

func ringKey(c Check, rule string) string { return stateKey(c) + ":" + rule }

// decide answers checks whose keys share a hash slot.
func (e *Redis) decide(ctx context.Context, op operation, checks []Check) ([]verdict, bool, error) {
	if op == opCheck && len(checks) == 1 && !e.whole {
		if v, known, err := e.buckets(ctx, checks[0]); known || err != nil {
			return []verdict{v}, v.fits || checks[0].Mode == policy.Shadow, err
		}
	}
	keys, args := e.arguments(op, checks)
	reply, err := e.conn.Run(ctx, decideScript, keys, args...)
	if err != nil {
		return nil, false, err
	}
	values, ok := reply.([]any)
	if !ok {
		return nil, false, fmt.Errorf("unexpected reply of decide: %v", reply)
	}
	return verdicts(checks, values)
}

func (e *Redis) arguments(op operation, checks []Check) ([]string, []any) {
	keys := make([]string, 0, 2*len(checks))
	args := make([]any, 0, 4+len(checks)*10)
	args = append(args, string(e.shape(op, checks)), e.now(), len(checks), invalidChannel)
	for _, c := range checks {
		keys = append(keys, stateKey(c))
		enforced := 1
		if c.Mode == policy.Shadow {
			enforced = 0
		}
		args = append(args, c.Policy+"/"+c.Key, c.Cost, enforced, len(c.Rules))
		for _, r := range c.Rules {
			if r.Algorithm == policy.SlidingWindow {
				keys = append(keys, ringKey(c, r.Name))
			}
			args = append(args, signature("", r), r.Limit, r.WindowMS*1000, r.Capacity(), r.Tick())
		}
	}
	return keys, args
}

// shape tells the script when it may try its front first.
func (e *Redis) shape(op operation, checks []Check) operation {
	if op != opCheck || len(checks) != 1 || e.whole {
		return op
	}
	if rules := checks[0].Rules; len(rules) == 1 && rules[0].Algorithm == policy.SlidingWindow {
		return opLog
	}
	return op
}

// signature is a rule as its line in the state begins, and what stands before it: where it differs,
// the state was written under another rule.
func signature(before string, r policy.Rule) string {
	b := make([]byte, 0, 96)
	b = append(append(append(append(append(b, before...), r.Name...), ' '), r.Algorithm...), ' ')
	for _, n := range [...]int64{r.Limit, r.WindowMS * 1000, r.Tick()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	return string(b)
}

func verdicts(checks []Check, values []any) ([]verdict, bool, error) {
	want := 1
	for _, c := range checks {
		want += 1 + 3*len(c.Rules)
	}
	if len(values) != want {
		return nil, false, fmt.Errorf("decide replied with %d numbers, not %d", len(values), want)
	}
	next := func() int64 {
		n, _ := values[0].(int64)
		values = values[1:]
		return n
	}
	allowed := next() == 1
	out := make([]verdict, len(checks))
	for i, c := range checks {
		out[i] = verdict{fits: next() == 1, rules: make([]numbers, len(c.Rules))}
		for j := range c.Rules {
			out[i].rules[j] = numbers{remaining: next(), reset: next(), retry: next()}
		}
	}
	return out, allowed, nil
}

// reset forgets a key.
func (e *Redis) reset(ctx context.Context, c Check) error {
	keys := []string{stateKey(c)}
	for _, r := range c.Rules {
		keys = append(keys, ringKey(c, r.Name))
	}
	return e.conn.Do(ctx, func(ctx context.Context) error {
		err := e.conn.Client().Del(ctx, keys...).Err()
		if err == nil {
			err = e.conn.Client().Publish(ctx, invalidChannel, c.Policy+"/"+c.Key).Err()
		}
		return err
	})
}

// slot groups keys that one script may touch. Alone, every key may be in one call; in a cluster
// those that share a hash tag.
func (e *Redis) slot(c Check) string {
	if _, cluster := e.conn.Client().(*redis.ClusterClient); !cluster {
		return ""
	}
	return strconv.Itoa(redisconn.Slot(stateKey(c)))
}
