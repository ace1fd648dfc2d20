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
	acquireScript = luascript.Load(scripts, "scripts/acquire.lua")
	renewScript   = luascript.Load(scripts, "scripts/renew.lua")
	releaseScript = luascript.Load(scripts, "scripts/release.lua")
	forceScript   = luascript.Load(scripts, "scripts/force.lua")
	inspectScript = luascript.Load(scripts, "scripts/inspect.lua")
	raiseScript   = luascript.Load(scripts, "scripts/raise.lua")
)

// linger is the time that Redis keeps the state of a lock after the lease has ended. While Redis
// has the state, the next fence is higher than the last fence even if the server's clock was set
// back. Without the state, the next fence is the server's time in microseconds, so it is higher
// unless the clock was set back.
const linger = 60 * time.Second

var lingerMS = strconv.FormatInt(linger.Milliseconds(), 10) //nolint:gochecknoglobals // a constant as text

// maxInspected is the maximum number of holders that Inspect returns.
const maxInspected = 10_000

// Redis keeps locks on one Redis deployment: a single server, a primary with replicas, or a
// cluster. Every method except a waiting Acquire makes one or two script calls. It is safe for
// concurrent use.
type Redis struct {
	conn    *redisconn.Conn
	wakeups *wakeups
}

// NewRedis returns a store that uses conn. [Redis.Close] does not close conn.
func NewRedis(conn *redisconn.Conn) *Redis {
	return &Redis{conn: conn, wakeups: newWakeups(conn.Client())}
}

// FromClient returns a store that uses the caller's client, with the default call timeout and
// circuit breaker of package redisconn. Disable the client's retries (MaxRetries: -1) and enable
// context deadlines (ContextTimeoutEnabled: true); otherwise a call can take longer than the call
// timeout. [Redis.Close] does not close the client.
func FromClient(client redis.UniversalClient) *Redis {
	return NewRedis(redisconn.FromClient(client, redisconn.Config{}))
}

// Close ends the pub/sub subscription of the waiters, if there is one.
func (r *Redis) Close() error { return r.wakeups.close() }

// stateKey returns the Redis key of the lock's state. The channel of the lock's wake-ups has the
// same name.
func (k Key) stateKey() string { return "{" + string(k.Kind) + ":" + k.Name + "}" }

// redisKeys returns all keys of a lock, in the order that the scripts declare; scripts/prelude.lua
// documents the keys. The keys share a hash tag, so that a cluster keeps them on one node.
func (k Key) redisKeys() []string {
	state := k.stateKey()
	return []string{state, state + ":leases", state + ":holders", state + ":queue", state + ":beats"}
}

// Renew extends the token's lease to ttl from now. A ttl of 0 means [DefaultTTL]. Renew never
// revives a lease that has ended. Errors: [ErrNotHeld], [fault.InvalidRequest],
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

// Release ends the token's lease and returns the time that the token held it. A repeated release
// succeeds and returns 0 until another token acquires the lock. Errors: [ErrNotHeld],
// [fault.InvalidRequest], [fault.StoreUnavailable].
func (r *Redis) Release(ctx context.Context, key Key, token string) (time.Duration, error) {
	key, err := NormalizeRelease(key, token)
	if err != nil {
		return 0, err
	}
	return r.release(ctx, key, token)
}

func (r *Redis) release(ctx context.Context, key Key, token string) (time.Duration, error) {
	// Fast path: an exclusive lock without waiters needs only the state key. Otherwise the script
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

// Force ends the leases of all holders and returns their number. The next fence is higher than the
// fences of these holders. Errors: [fault.InvalidRequest], [fault.StoreUnavailable].
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

// Inspect returns at most 10 000 holders and the number of waiters. It writes nothing. Errors:
// [fault.InvalidRequest], [fault.StoreUnavailable].
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
		return State{}, fmt.Errorf("unexpected reply from inspect.lua: %v", reply)
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

// holderOf parses one holder in a reply of scripts/inspect.lua.
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

// integer converts a number in a script's reply, which Redis returns as an integer or as text. It
// returns 0 for any other value.
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

// instant converts a time in a script's reply, in µs since the epoch.
func instant(v any) time.Time { return time.UnixMicro(integer(v)).UTC() }
