package lock

import (
	"encoding/json"
	"time"
)

// Mode distinguishes exclusive from shared leases.
type Mode string

const (
	// Exclusive allows one holder.
	Exclusive Mode = "exclusive"
	// Shared allows any number of shared holders and no exclusive holder.
	Shared Mode = "shared"
)

// Kind distinguishes locks from semaphores. A lock and a semaphore with the same name are
// independent.
type Kind string

const (
	// Lock has one exclusive holder or any number of shared holders.
	Lock Kind = "lock"
	// Semaphore has at most as many holders as its capacity.
	Semaphore Kind = "sem"
)

// Limits and defaults of a [Request].
const (
	MinTTL      = 100 * time.Millisecond
	MaxTTL      = time.Hour
	DefaultTTL  = 10 * time.Second
	MaxWait     = 20 * time.Second
	MinToken    = 16   // characters
	MaxToken    = 128  // characters
	MaxOwner    = 256  // bytes
	MaxMetadata = 1024 // bytes of JSON
	MaxCapacity = 10_000
)

// Key identifies a lock or a semaphore.
type Key struct {
	Kind Kind   // defaults to Lock
	Name string // 1 to 128 letters, digits and . _ : - characters; starts with a letter or digit
}

// Request describes a lease to acquire. Name is required. Capacity is required for a semaphore.
type Request struct {
	Kind Kind   // defaults to Lock
	Name string // as in Key
	// Token proves ownership: 16 to 128 printable ASCII characters without spaces. Defaults to 128
	// random bits. To be able to repeat a request, set Token. If the token already holds the lock,
	// Acquire extends the lease and keeps its fence.
	Token string
	// Owner is a public label of up to 256 bytes without control characters.
	Owner string
	// Metadata is a public JSON object of up to 1 KiB. Nil means none.
	Metadata json.RawMessage
	// TTL is the length of the lease: 100 ms to 1 h. Defaults to 10 s.
	TTL time.Duration
	// Wait is the maximum time that Acquire waits for a held lock: 0 to 20 s. Defaults to 0.
	Wait time.Duration
	// Mode defaults to Exclusive for a lock. A semaphore is always Shared.
	Mode Mode
	// Capacity is the number of permits of a semaphore: 1 to 10 000. For a lock it must be 0.
	Capacity int64
}

// Key returns the key of the requested lock or semaphore.
func (r Request) Key() Key { return Key{Kind: r.Kind, Name: r.Name} }

// Lease is a granted or renewed lock or permit. Renew leaves Mode, AcquiredAt, Reacquired, InUse
// and Waited unset.
type Lease struct {
	Key

	Token      string
	Fence      int64 // higher than the fence of every earlier holder; less than 2⁵³
	Mode       Mode
	TTL        time.Duration
	AcquiredAt time.Time // by the store's clock
	// ExpiresAt is the end of the lease, by the store's clock; for a [Quorum], by the clock of this
	// process. Before ExpiresAt the store grants no conflicting lease.
	ExpiresAt  time.Time
	Reacquired bool          // the token already held the lock; the fence is unchanged
	InUse      int64         // permits in use, including the permit of this lease
	Waited     time.Duration // time from the call to the grant
}

// Holder describes a holder. It never includes the token, which is secret.
type Holder struct {
	Owner      string
	Fence      int64
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Metadata   json.RawMessage // nil if there is none
}

// State is the result of Inspect.
type State struct {
	Key

	Held    bool
	Mode    Mode // "" if the lock is not held
	Holders []Holder
	Waiters int64 // waiting Acquire calls; always 0 on stores whose waiters poll
}
