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
	//go:embed scripts/raise.lua
	raiseSource string

	acquireScript = redis.NewScript(acquireSource)
	renewScript   = redis.NewScript(renewSource)
	releaseScript = redis.NewScript(releaseSource)
	forceScript   = redis.NewScript(forceSource)
	inspectScript = redis.NewScript(inspectSource)
	raiseScript   = redis.NewScript(raiseSource)
)

// linger is how long a lock's last fence outlives its lease. Within it a fence rises even when the
// server's clock was set back; after it, and after a loss of all data, it rises because it is at
// least the server's time in microseconds.
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
	base := base(kind, name)
	return []string{base, base + ":leases", base + ":holders", base + ":queue", base + ":beats"}
}

// base is the key of the state, and the channel of the wake-ups.
func base(kind Kind, name string) string { return "{" + string(kind) + ":" + name + "}" }

// try is one attempt of a call. One that does not queue, of an exclusive lock for which nobody
// waits, needs one key, which is as quick as it gets; when the script finds it otherwise it changes
// nothing, and is called again with all keys.
func (r *Redis) try(ctx context.Context, q Request, call string, queue bool) (attempt, error) {
	return r.tryFrom(ctx, q, call, queue, "")
}

// tryFrom is try with the least fence to give out, as text of 16 digits, or "".
func (r *Redis) tryFrom(ctx context.Context, q Request, call string, queue bool, least string) (attempt, error) {
	ttl, keep := column(q.TTL), q.TTL.Milliseconds()+linger.Milliseconds()
	record := q.Token + "\n" + call + "\n" + q.Owner + "\n" + string(q.Metadata)
	permits, beat := q.Capacity, int64(0)
	if q.Mode != Shared {
		permits = 0
	}
	if queue {
		beat = heartbeat.Microseconds()
	}
	args := []any{ttl, record, keep, permits, beat, least}
	if permits == 0 && !queue {
		if least == "" {
			args = args[:3]
		}
		reply, err := r.conn.Run(ctx, acquireScript, []string{base(q.Kind, q.Name)}, args...)
		if err != nil || reply != int64(0) {
			return attemptOf(q, reply, err)
		}
	}
	reply, err := r.conn.Run(ctx, acquireScript, keys(q.Kind, q.Name), args...)
	return attemptOf(q, reply, err)
}

// column is a lease's length in µs, in ten columns.
func column(ttl time.Duration) string {
	digits := strconv.FormatInt(ttl.Microseconds(), 10)
	return strings.Repeat(" ", 10-len(digits)) + digits
}

// attempt is what one acquire script answered: a lease, or who is in the way.
type attempt struct {
	lease     *Lease
	remaining time.Duration
	holder    string
	why       obstacle
}

// obstacle is why a lock could not be had.
type obstacle int64

const (
	heldByOther obstacle = iota
	keptForWaiter
	heldInOtherMode
)

func attemptOf(q Request, reply any, err error) (attempt, error) {
	if err != nil {
		return attempt{}, err
	}
	lease := Lease{Name: q.Name, Token: q.Token, Mode: q.Mode, TTL: q.TTL, InUse: 1}
	values, ok := reply.([]any)
	switch {
	case !ok && integer(reply) > 0:
		now := integer(reply)
		lease.Fence, lease.AcquiredAt, lease.ExpiresAt = now, now/1000, (now+q.TTL.Microseconds())/1000
	case len(values) == 6:
		lease.Fence, lease.AcquiredAt, lease.ExpiresAt = integer(values[1]), integer(values[2])/1000,
			integer(values[3])/1000
		lease.Reacquired, lease.InUse = integer(values[4]) == 1, integer(values[5])
	case len(values) == 4:
		owner, _ := values[2].(string)
		return attempt{remaining: micros(values[1]), holder: owner, why: obstacle(integer(values[3]))}, nil
	default:
		return attempt{}, fmt.Errorf("unexpected reply of acquire: %v", reply)
	}
	return attempt{lease: &lease}, nil
}

// Renew extends a lease that the token holds, by kind and name, to ttl from now. Errors:
// lock_not_held, store_unavailable.
func (r *Redis) Renew(ctx context.Context, kind Kind, name, token string, ttl time.Duration) (Lease, error) {
	reply, err := r.conn.Run(ctx, renewScript, keys(kind, name)[:3], token, ttl.Microseconds(), lingerMS)
	if err != nil {
		return Lease{}, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) != 2 {
		return Lease{}, notHeld(integer(reply))
	}
	return Lease{Name: name, Token: token, TTL: ttl, Fence: integer(values[0]), ExpiresAt: integer(values[1]) / 1000},
		nil
}

// Release gives back what the token holds and returns how long it was held; zero when this token
// had released it already, as after a lost answer. Errors: lock_not_held, store_unavailable.
func (r *Redis) Release(ctx context.Context, kind Kind, name, token string) (time.Duration, error) {
	reply, err := r.conn.Run(ctx, releaseScript, []string{base(kind, name)}, token, lingerMS)
	if err == nil && reply == int64(0) {
		reply, err = r.conn.Run(ctx, releaseScript, keys(kind, name), token, lingerMS)
	}
	switch held := integer(reply); {
	case err != nil:
		return 0, err
	case held == releasedAlready:
		return 0, nil
	case held <= 0:
		return 0, notHeld(held)
	default:
		return time.Duration(held) * time.Microsecond, nil
	}
}

// giveUp takes a call out of the queue, and gives back what it may have got without knowing, on a
// context of its own. When the store is away, its place in the queue ends with its heartbeat, and
// the lease with its TTL.
func (r *Redis) giveUp(ctx context.Context, q Request, call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	_, _ = r.conn.Run(ctx, releaseScript, keys(q.Kind, q.Name), q.Token, lingerMS, call)
}

// Force takes it from everybody who holds it, and returns how many did. The next fence is higher
// than every one before.
func (r *Redis) Force(ctx context.Context, kind Kind, name string) (int64, error) {
	reply, err := r.conn.Run(ctx, forceScript, keys(kind, name), lingerMS)
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
	h := Holder{Owner: owner, Fence: integer(row[0]), AcquiredAt: integer(row[1]) / 1000,
		ExpiresAt: integer(row[2]) / 1000}
	if metadata != "" {
		h.Metadata = json.RawMessage(metadata)
	}
	return h
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
