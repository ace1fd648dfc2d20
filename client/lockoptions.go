package client

import (
	"crypto/rand"
	"fmt"
	"time"
)

// LockMode says how many may hold a lock at once.
type LockMode string

// The modes. LockExclusive is the default.
const (
	LockExclusive LockMode = "exclusive"
	LockShared    LockMode = "shared" // any number at once, but none beside an exclusive holder
)

// Consistency says where a lock is kept, and so what it survives.
type Consistency string

// The consistencies. ConsistencyRedis is the default.
const (
	ConsistencyRedis  Consistency = "redis"  // one Redis
	ConsistencyQuorum Consistency = "quorum" // a majority of independent Redis primaries
	ConsistencyStrong Consistency = "strong" // DynamoDB, by conditional writes
)

// LockOptions describe a lock to take.
type LockOptions struct {
	// TTL is how long the lease lasts without a renewal: 100 ms to 1 h. It is renewed each third of
	// it. Default 10 s.
	TTL time.Duration
	// Wait is how long [Client.Lock] waits for the lock. Zero: as long as its context allows.
	Wait time.Duration
	// Owner is a public label of up to 256 bytes, which Inspect shows. Default: the caller's IAM
	// ARN.
	Owner string
	// Metadata becomes a JSON object of up to 1 KiB, which Inspect shows.
	Metadata any
	// Mode is [LockExclusive] by default. A semaphore has none.
	Mode LockMode
	// Consistency is [ConsistencyRedis] by default, and always for a semaphore.
	Consistency Consistency
	// Token proves the ownership: 16 to 128 printable ASCII characters. Default: 128 random bits. A
	// lock that this token holds already is taken over.
	Token string
	// Margin ends the lock's context this much before the lease can no longer be trusted, when it
	// cannot be renewed: time to stop the work in. Less than half of TTL. Default 0.
	Margin time.Duration
	// MaxHold ends the lock's context, and its renewal, after this time. Default 0: no end.
	MaxHold time.Duration
}

// DefaultTTL is the TTL of a lock that asks for none.
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

// validate checks what the API does not see; the rest is the API's to refuse.
func (o LockOptions) validate(op string) error {
	var f fields
	if o.TTL < time.Millisecond { // it would be sent as nothing
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

// The bodies of the contract.
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
		Fence      int64 `json:"fence"`
		TTL        int64 `json:"ttl_ms"`
		Reacquired bool  `json:"reacquired"`
		InUse      int   `json:"in_use"`
	}
)

// lease is what an answer grants.
type lease struct {
	fence      int64
	ttl        time.Duration
	reacquired bool
	inUse      int
	// started is when the request that was granted began. The lease is counted from then on this
	// process's monotonic clock, so that it ends here before it ends at the store.
	started time.Time
}

func (b leaseBody) lease(asked time.Duration, started time.Time) lease {
	return lease{fence: b.Fence, ttl: min(asked, milliseconds(b.TTL)), reacquired: b.Reacquired, inUse: b.InUse,
		started: started}
}

// until is when the lease can no longer be trusted. One percent and 2 ms are allowed for clocks
// that run at different speeds, as in Redlock
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
func (l lease) until() time.Time {
	return l.started.Add(l.ttl - l.ttl/100 - 2*time.Millisecond)
}
