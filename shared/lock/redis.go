package lock

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/redisconn"
)

var (
	//go:embed scripts/acquire.lua
	acquireSource string
	//go:embed scripts/renew.lua
	renewSource string
	//go:embed scripts/release.lua
	releaseSource string
	//go:embed scripts/force.lua
	forceSource string
	//go:embed scripts/inspect.lua
	inspectSource string
	//go:embed scripts/leave.lua
	leaveSource string

	acquireScript = redis.NewScript(acquireSource)
	renewScript   = redis.NewScript(renewSource)
	releaseScript = redis.NewScript(releaseSource)
	forceScript   = redis.NewScript(forceSource)
	inspectScript = redis.NewScript(inspectSource)
	leaveScript   = redis.NewScript(leaveSource)
)

// linger is how long a lock's last fence outlives its lease. Within it a fence rises even when the server's clock was set back; after it,
// and after a loss of all data, it rises because it is at least the server's time in microseconds.
const linger = 60 * time.Second

var lingerMS = strconv.FormatInt(linger.Milliseconds(), 10) //nolint:gochecknoglobals // a constant as text

// Redis keeps locks on one Redis deployment. Every call but a wait is one script call.
type Redis struct {
	conn *redisconn.Conn
	wake *wakeups
}

// NewRedis makes a Redis.
func NewRedis(conn *redisconn.Conn) *Redis {
	return &Redis{conn: conn, wake: newWakeups(conn.Client())}
}

// Close ends the subscription that waiters use; it does not close the connection.
func (r *Redis) Close() error { return r.wake.close() }

// keys are documented in scripts/acquire.lua. All of one lock share a hash tag.
func keys(kind Kind, name string) []string {
	base := "{" + string(kind) + ":" + name + "}"
	return []string{base, base + ":leases", base + ":holders", base + ":queue", base + ":beats"}
}

// try is one attempt; waiter is "" for one that will not wait.
func (r *Redis) try(ctx context.Context, q Request, waiter string) (attempt, error) {
	mode := "x"
	if q.Mode == Shared {
		mode = "s"
	}
	reply, err := r.conn.Run(ctx, acquireScript, keys(q.Kind, q.Name), mode, q.Token, q.TTL.Microseconds(),
		q.Owner+"\n"+string(q.Metadata), q.Capacity, waiter, heartbeat.Microseconds(), lingerMS)
	if err != nil {
		return attempt{}, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) < 4 {
		return attempt{}, fmt.Errorf("unexpected reply of acquire: %v", reply)
	}
	if integer(values[0]) == 0 {
		owner, _ := values[2].(string)
		return attempt{remaining: micros(values[1]), holder: owner, now: integer(values[3])}, nil
	}
	return attempt{lease: &Lease{
		Name: q.Name, Token: q.Token, Mode: q.Mode, TTL: q.TTL, Fence: integer(values[1]), AcquiredAt: integer(values[2]) / 1000,
		ExpiresAt: integer(values[3]) / 1000, Reacquired: integer(values[4]) == 1, InUse: integer(values[5]),
	}}, nil
}

// attempt is what one acquire script answered: a lease, or who is in the way.
type attempt struct {
	lease     *Lease
	remaining time.Duration
	holder    string
	now       int64 // the server's clock, µs
}

// Renew extends a lease that the token holds, by kind and name, to ttl from now. Errors: lock_not_held, store_unavailable.
func (r *Redis) Renew(ctx context.Context, kind Kind, name, token string, ttl time.Duration) (Lease, error) {
	values, err := r.run(ctx, renewScript, keys(kind, name)[:3], token, ttl.Microseconds(), lingerMS)
	if err != nil {
		return Lease{}, err
	}
	if values[0] == 0 {
		return Lease{}, notHeld(values[1])
	}
	return Lease{Name: name, Token: token, TTL: ttl, Fence: values[1], ExpiresAt: values[2] / 1000}, nil
}

// Release gives back what the token holds and returns how long it was held. Errors: lock_not_held, store_unavailable.
func (r *Redis) Release(ctx context.Context, kind Kind, name, token string) (time.Duration, error) {
	values, err := r.run(ctx, releaseScript, keys(kind, name)[:4], token, lingerMS)
	if err != nil {
		return 0, err
	}
	if values[0] == 0 {
		return 0, notHeld(values[1])
	}
	return time.Duration(values[1]) * time.Microsecond, nil
}

// Force takes it from everybody who holds it, and returns how many did. The next fence is higher than every one before.
func (r *Redis) Force(ctx context.Context, kind Kind, name string) (int64, error) {
	reply, err := r.conn.Run(ctx, forceScript, keys(kind, name)[:4], lingerMS)
	if err != nil {
		return 0, err
	}
	return integer(reply), nil
}

// Inspect reads who holds it and how many wait. It writes nothing.
func (r *Redis) Inspect(ctx context.Context, kind Kind, name string) (State, error) {
	reply, err := r.conn.Run(ctx, inspectScript, keys(kind, name), maxInspected)
	if err != nil {
		return State{}, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) < 3 {
		return State{}, fmt.Errorf("unexpected reply of inspect: %v", reply)
	}
	s := State{Name: name, Waiters: integer(values[1]), Holders: []Holder{}}
	switch values[0] {
	case "X":
		s.Mode = Exclusive
	case "S":
		s.Mode = Shared
	}
	s.Held = s.Mode != ""
	for row := values[3:]; len(row) >= 4; row = row[4:] {
		s.Holders = append(s.Holders, holderOf(row))
	}
	return s, nil
}

func holderOf(row []any) Holder {
	label, _ := row[3].(string)
	owner, metadata, _ := strings.Cut(label, "\n")
	h := Holder{Owner: owner, Fence: integer(row[0]), AcquiredAt: integer(row[1]) / 1000, ExpiresAt: integer(row[2]) / 1000}
	if metadata != "" {
		h.Metadata = json.RawMessage(metadata)
	}
	return h
}

// run is for scripts that reply with integers only.
func (r *Redis) run(ctx context.Context, script *redis.Script, keys []string, args ...any) ([]int64, error) {
	reply, err := r.conn.Run(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) < 2 {
		return nil, fmt.Errorf("unexpected reply of a lock's script: %v", reply)
	}
	out := make([]int64, len(values))
	for i, v := range values {
		out[i] = integer(v)
	}
	return out, nil
}

// integer reads a number that a script returned as such or as text.
func integer(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case string:
		i, _ := strconv.ParseInt(n, 10, 64)
		return i
	default:
		return 0
	}
}

func micros(v any) time.Duration { return time.Duration(integer(v)) * time.Microsecond }
