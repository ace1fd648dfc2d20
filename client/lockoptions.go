package client

import (
	"crypto/rand"
	"fmt"
	"time"
)

// LockMode selects whether a lock has one holder or several.
type LockMode string

// The modes of a lock.
const (
	LockExclusive LockMode = "exclusive" // one holder; the default
	LockShared    LockMode = "shared"    // any number of shared holders, but no exclusive holder
)

// Consistency selects the store of a lock, and thereby which failures the lock survives.
type Consistency string

// The consistency levels of a lock.
const (
	ConsistencyRedis  Consistency = "redis"  // one Redis; the default
	ConsistencyQuorum Consistency = "quorum" // a majority of independent Redis primaries
	ConsistencyStrong Consistency = "strong" // DynamoDB, with conditional writes
)

// LockOptions describes how to acquire a lock. The zero value is valid.
type LockOptions struct {
	// TTL is the duration of the lease without a renewal: 100 ms to 1 h. The client renews the
	// lease after each third of the TTL. Defaults to [DefaultTTL].
	TTL time.Duration
	// Wait is the maximum time that [Client.Lock] waits for the lock. Zero means until the context
	// ends.
	Wait time.Duration
	// Owner is a label of up to 256 bytes, which [Client.Inspect] returns. Defaults to the caller's
	// IAM ARN.
	Owner string
	// Metadata is encoded as a JSON object of up to 1 KiB, which [Client.Inspect] returns.
	Metadata any
	// Mode defaults to [LockExclusive]. It must be empty for a semaphore.
	Mode LockMode
	// Consistency defaults to [ConsistencyRedis]. A semaphore supports no other consistency.
	Consistency Consistency
	// Token proves the ownership: 16 to 128 printable ASCII characters. If the token already holds
	// the lock, the call succeeds and renews the lease. Defaults to 128 random bits.
	Token string
	// Margin is the time that the work needs to stop: if the lease is not renewed, the lock's
	// context ends this long before the lease ends. 0 to half of TTL. Defaults to 0.
	Margin time.Duration
	// MaxHold is the maximum time that the lock is held. After this time, the lock's context and
	// its renewal end. Zero means no limit.
	MaxHold time.Duration
}

// DefaultTTL is the default of [LockOptions.TTL].
const DefaultTTL = 10 * time.Second

func (o LockOptions) withDefaults() LockOptions {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.Token == "" {
		o.Token = rand.Text()
	}
	return o
}

// validate checks the options that the API does not receive, and refuses a TTL that would be sent
// as 0. The API checks the rest.
func (o LockOptions) validate(op string) error {
	var f fields
	if o.TTL < time.Millisecond { // it would be sent as 0, the API's default
		f.add("ttl_ms", "must be 100 to 3600000")
	}
	if o.Wait < 0 {
		f.add("wait", "must not be negative")
	}
	if o.Margin < 0 || o.Margin > o.TTL/2 {
		f.add("margin", "must be 0 to half of the TTL, %s", o.TTL/2)
	}
	if o.MaxHold < 0 {
		f.add("max_hold", "must not be negative")
	}
	return f.err(op)
}

// target is a lock or a semaphore.
type target struct {
	kind     string // a path segment: locks, semaphores
	name     string
	capacity int // of a semaphore
}

const (
	locks      = "locks"
	semaphores = "semaphores"
)

// String returns the name of the target for error texts.
func (t target) String() string {
	if t.kind == semaphores {
		return fmt.Sprintf("the semaphore %q", t.name)
	}
	return fmt.Sprintf("the lock %q", t.name)
}

func (t target) check(op string) error { return checkName(op, "name", t.name) }

func (t target) path(action ...string) string {
	return pathTo(append([]string{"v1", t.kind, t.name}, action...)...)
}

// Request and response bodies of the API.
type (
	acquireBody struct {
		TTL         int64       `json:"ttl_ms"`
		Wait        int64       `json:"wait_ms,omitzero"`
		Token       string      `json:"token"`
		Owner       string      `json:"owner,omitzero"`
		Mode        LockMode    `json:"mode,omitzero"`
		Metadata    any         `json:"metadata,omitzero"`
		Consistency Consistency `json:"consistency,omitzero"`
		Capacity    int         `json:"capacity,omitzero"`
	}
	heldBody struct {
		Token       string      `json:"token"`
		TTL         int64       `json:"ttl_ms,omitzero"`
		Consistency Consistency `json:"consistency,omitzero"`
	}
	leaseBody struct {
		Fence      int64  `json:"fence"`
		TTL        millis `json:"ttl_ms"`
		Reacquired bool   `json:"reacquired"`
		InUse      int    `json:"in_use"`
	}
)

// lease is a lease that the API has granted.
type lease struct {
	fence      int64
	ttl        time.Duration
	reacquired bool
	inUse      int
	// started is the start of the granted request, on the monotonic clock of this process. The
	// client measures the lease from this time, so that the client stops before the lease ends at
	// the store.
	started time.Time
}

func (b leaseBody) lease(requested time.Duration, started time.Time) lease {
	return lease{
		fence: b.Fence, ttl: min(requested, time.Duration(b.TTL)), reacquired: b.Reacquired, inUse: b.InUse,
		started: started,
	}
}

// until returns the time at which the client considers the lease ended: the time l.started plus the
// TTL, minus 1 % of the TTL and 2 ms for clock drift, as in Redlock
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
func (l lease) until() time.Time {
	return l.started.Add(l.ttl - l.ttl/100 - 2*time.Millisecond)
}
