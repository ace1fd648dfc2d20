package lock

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/internal/luascript"
	"github.com/sluicehq/sluice/shared/redisconn"
)

//go:embed scripts
var scripts embed.FS

var (
	acquireScript = luascript.MustLoad(scripts, "scripts/acquire.lua")
	renewScript   = luascript.MustLoad(scripts, "scripts/renew.lua")
	releaseScript = luascript.MustLoad(scripts, "scripts/release.lua")
	forceScript   = luascript.MustLoad(scripts, "scripts/force.lua")
	inspectScript = luascript.MustLoad(scripts, "scripts/inspect.lua")
	raiseScript   = luascript.MustLoad(scripts, "scripts/raise.lua")
)

// linger is how long the state of a free lock stays in Redis after its lease. Until then the next
// fence is higher than the last one even if the server's clock was set back. Later, and after a
// loss of all data, it is higher because a fence is at least the server's time in microseconds.
const linger = 60 * time.Second

var lingerMS = strconv.FormatInt(linger.Milliseconds(), 10) //nolint:gochecknoglobals // a constant as text

// maxInspected bounds the holders that Inspect returns.
const maxInspected = 10_000

// Redis keeps locks on one Redis deployment: a single server, a primary with replicas, or a
// cluster. Every method except a waiting Acquire is one script call. It is safe for concurrent use.
type Redis struct {
	conn    *redisconn.Conn
	wakeups *wakeups
}

// NewRedis returns a Redis on a connection. [Redis.Close] does not close the connection.
func NewRedis(conn *redisconn.Conn) *Redis {
	return &Redis{conn: conn, wakeups: newWakeups(conn.Client())}
}

// FromClient returns a Redis on a client of the caller, with the default call timeout and circuit
// breaker of package redisconn. The client should not retry (MaxRetries: -1) and should obey
// contexts (ContextTimeoutEnabled: true); otherwise a call can take longer than the call timeout.
// [Redis.Close] does not close the client.
func FromClient(client redis.UniversalClient) *Redis {
	return NewRedis(redisconn.FromClient(client, redisconn.Config{}))
}

// Close ends the pub/sub subscription of the waiters, if there is one.
func (r *Redis) Close() error { return r.wakeups.close() }

// stateKey returns the Redis key of the lock's state, which also names the channel of its wake-ups.
func (k Key) stateKey() string { return "{" + string(k.Kind) + ":" + k.Name + "}" }

// redisKeys returns all keys of a lock, in the order of the scripts; scripts/prelude.lua documents
// them. They share a hash tag, so that a cluster keeps them on one node.
func (k Key) redisKeys() []string {
	state := k.stateKey()
	return []string{state, state + ":leases", state + ":holders", state + ":queue", state + ":beats"}
}

// Renew extends the token's lease to ttl from now. A ttl of 0 means [DefaultTTL]. It never
// reacquires a lease that has ended. Errors: [ErrNotHeld], [fault.InvalidRequest],
// [fault.StoreUnavailable].
func (r *Redis) Renew(ctx context.Context, key Key, token string, ttl time.Duration) (Lease, error) {
	key, ttl, err := NormalizeRenewal(key, token, ttl)
	if err != nil {
		return Lease{}, err
	}
	return r.renew(ctx, key, token, ttl)
}

func (r *Redis) renew(ctx context.Context, key Key, token string, ttl time.Duration) (Lease, error) {
	reply, err := r.conn.Run(ctx, renewScript, key.redisKeys()[:3], token, ttl.Microseconds(), lingerMS)
	if err != nil {
		return Lease{}, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) != 2 {
		return Lease{}, notHeld(integer(reply))
	}
	return Lease{Key: key, Token: token, TTL: ttl, Fence: integer(values[0]), ExpiresAt: instant(values[1])}, nil
}

// Release ends the token's lease and returns how long it was held. A repeated release succeeds and
// returns 0. Errors: [ErrNotHeld], [fault.InvalidRequest], [fault.StoreUnavailable].
func (r *Redis) Release(ctx context.Context, key Key, token string) (time.Duration, error) {
	key, err := NormalizeRelease(key, token)
	if err != nil {
		return 0, err
	}
	return r.release(ctx, key, token)
}

func (r *Redis) release(ctx context.Context, key Key, token string) (time.Duration, error) {
	// Fast path: an exclusive lock without waiters needs the state key only. Otherwise the script
	// changes nothing and replies 0.
	reply, err := r.conn.Run(ctx, releaseScript, []string{key.stateKey()}, token, lingerMS)
	if err == nil && reply == int64(0) {
		reply, err = r.conn.Run(ctx, releaseScript, key.redisKeys(), token, lingerMS)
	}

	switch held := integer(reply); {
	case err != nil:
		return 0, err
	case held == replyReleasedAlready:
		return 0, nil
	case held <= 0:
		return 0, notHeld(held)
	default:
		return time.Duration(held) * time.Microsecond, nil
	}
}

// Force ends the leases of all holders and returns their number. The next fence is higher than
// theirs. Errors: [fault.InvalidRequest], [fault.StoreUnavailable].
func (r *Redis) Force(ctx context.Context, key Key) (int64, error) {
	key, err := key.Normalize()
	if err != nil {
		return 0, err
	}
	return r.force(ctx, key)
}

func (r *Redis) force(ctx context.Context, key Key) (int64, error) {
	reply, err := r.conn.Run(ctx, forceScript, key.redisKeys(), lingerMS)
	if err != nil {
		return 0, err
	}
	return integer(reply), nil
}

// Inspect returns the holders, at most 10 000 of them, and the number of waiters. It writes
// nothing. Errors: [fault.InvalidRequest], [fault.StoreUnavailable].
func (r *Redis) Inspect(ctx context.Context, key Key) (State, error) {
	key, err := key.Normalize()
	if err != nil {
		return State{}, err
	}
	return r.inspect(ctx, key)
}

func (r *Redis) inspect(ctx context.Context, key Key) (State, error) {
	reply, err := r.conn.Run(ctx, inspectScript, key.redisKeys(), maxInspected)
	if err != nil {
		return State{}, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) < 3 {
		return State{}, fmt.Errorf("unexpected reply of inspect: %v", reply)
	}

	s := State{Key: key, Waiters: integer(values[1]), Holders: []Holder{}}
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

// holderOf reads one holder of the reply of scripts/inspect.lua.
func holderOf(row []any) Holder {
	label, _ := row[3].(string)
	owner, metadata, _ := strings.Cut(label, "\n")
	h := Holder{
		Owner:      owner,
		Fence:      integer(row[0]),
		AcquiredAt: instant(row[1]),
		ExpiresAt:  instant(row[2]),
	}
	if metadata != "" {
		h.Metadata = json.RawMessage(metadata)
	}
	return h
}

// Replies of scripts/renew.lua and scripts/release.lua if the token holds no lease.
const (
	replyHeldByOther     = -2
	replyForced          = -3
	replyReleasedAlready = -4
)

func notHeld(reply int64) error {
	switch reply {
	case replyHeldByOther:
		return NotHeld(HeldByOther)
	case replyForced:
		return NotHeld(Forced)
	default:
		return NotHeld(Expired)
	}
}

// integer converts a number that a script returned as a number or as text.
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

// instant converts µs since the epoch that a script returned.
func instant(v any) time.Time { return time.UnixMicro(integer(v)).UTC() }
