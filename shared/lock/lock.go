// Package lock is Sluice's distributed lock: leases with fences, exclusive or shared, and
// semaphores.
//
// A lease alone cannot protect data from a holder that was paused beyond it (Kleppmann, "How to do
// distributed locking", 2016); the fence can: it rises from holder to holder, and the resource
// refuses a lower one.
package lock

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/shared/fault"
)

// Mode says how many may hold a lock at once.
type Mode string

// The modes.
const (
	Exclusive Mode = "exclusive"
	Shared    Mode = "shared"
)

// Kind tells locks from semaphores: they never meet, even under one name.
type Kind string

// The kinds.
const (
	Lock      Kind = "lock"
	Semaphore Kind = "sem"
)

// Ranges of the contract.
const (
	MinTTL       = 100 * time.Millisecond
	MaxTTL       = time.Hour
	DefaultTTL   = 10 * time.Second
	MaxWait      = 20 * time.Second
	MinToken     = 16
	MaxToken     = 128
	MaxOwner     = 256  // bytes
	MaxMetadata  = 1024 // bytes of JSON
	MaxCapacity  = 10_000
	maxInspected = 10_000
)

// Request asks for a lock or a permit.
type Request struct {
	Kind Kind
	Name string
	// Token proves the ownership: 16 to 128 printable ASCII characters without spaces. Empty: 128
	// random bits are made.
	Token string
	// Owner is a public label, up to 256 bytes without control characters.
	Owner string
	// Metadata is a JSON object of up to 1 KiB; nil is none.
	Metadata json.RawMessage
	// TTL is 100 ms to one hour. Default 10 s.
	TTL time.Duration
	// Wait is how long to wait for it: 0 to 20 s.
	Wait time.Duration
	Mode Mode
	// Capacity is a semaphore's: 1 to 10 000.
	Capacity int64
}

// Lease is what a holder has.
type Lease struct {
	Name       string
	Token      string
	Fence      int64 // rises strictly from holder to holder
	Mode       Mode
	TTL        time.Duration
	AcquiredAt int64 // ms since the epoch, by the store's clock
	ExpiresAt  int64 // likewise; never later than the moment at which the store lets another holder in
	Reacquired bool  // the token held it already
	InUse      int64 // permits in use, this one included
	Waited     time.Duration
}

// Holder is a holder as others may see it: never with its token.
type Holder struct {
	Owner      string
	Fence      int64
	AcquiredAt int64
	ExpiresAt  int64
	Metadata   json.RawMessage
}

// State is a lock as Inspect finds it.
type State struct {
	Name    string
	Held    bool
	Mode    Mode // "" when it is not held
	Holders []Holder
	Waiters int64
}

// Normalize fills in defaults and returns an invalid_request error that names every bad field.
func (r Request) Normalize() (Request, error) {
	var f fault.Fields
	f.CheckName("name", r.Name)
	if r.TTL == 0 {
		r.TTL = DefaultTTL
	}
	checkTTL(&f, r.TTL)
	if r.Wait < 0 || r.Wait > MaxWait {
		f.Add("wait_ms", "must be 0 to %d", MaxWait.Milliseconds())
	}
	if r.Token == "" {
		r.Token = rand.Text()
	} else {
		checkToken(&f, r.Token)
	}
	if !utf8.ValidString(r.Owner) || len(r.Owner) > MaxOwner || strings.ContainsFunc(r.Owner, isControl) {
		f.Add("owner", "must be at most %d bytes of UTF-8 without control characters", MaxOwner)
	}
	r.Metadata = checkMetadata(&f, r.Metadata)
	switch {
	case r.Mode == "":
		r.Mode = Exclusive
	case r.Mode != Exclusive && r.Mode != Shared:
		f.Add("mode", `must be "exclusive" or "shared"`)
	}
	if r.Kind == Semaphore {
		r.Mode = Shared
		if r.Capacity < 1 || r.Capacity > MaxCapacity {
			f.Add("capacity", "is required and must be 1 to %d", MaxCapacity)
		}
	} else {
		r.Kind, r.Capacity = Lock, 1<<31
	}
	return r, f.Err()
}

// checkMetadata returns the object without white space.
func checkMetadata(f *fault.Fields, metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 || string(metadata) == "null" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(metadata, &object); err != nil {
		f.Add("metadata", "must be an object")
		return nil
	}
	compact, err := json.Marshal(object)
	if err != nil || len(compact) > MaxMetadata {
		f.Add("metadata", "must be at most %d bytes of JSON", MaxMetadata)
		return nil
	}
	return compact
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

func checkTTL(f *fault.Fields, ttl time.Duration) {
	if ttl < MinTTL || ttl > MaxTTL {
		f.Add("ttl_ms", "must be %d to %d", MinTTL.Milliseconds(), MaxTTL.Milliseconds())
	}
}

func checkToken(f *fault.Fields, token string) {
	if len(token) < MinToken || len(token) > MaxToken {
		f.Add("token", "must be %d to %d characters long", MinToken, MaxToken)
		return
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			f.Add("token", "must be printable ASCII without spaces")
			return
		}
	}
}

// CheckHeld validates the input of a renewal (with its ttl) or of a release (ttl 0).
func CheckHeld(name, token string, ttl time.Duration) error {
	var f fault.Fields
	f.CheckName("name", name)
	if token == "" {
		f.Add("token", "is required")
	} else {
		checkToken(&f, token)
	}
	if ttl != 0 {
		checkTTL(&f, ttl)
	}
	return f.Err()
}
