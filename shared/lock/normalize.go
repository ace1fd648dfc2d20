package lock

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/shared/fault"
)

// Normalize fills in defaults, including a random token, and compacts Metadata. It returns a
// [fault.InvalidRequest] error that lists every invalid field by its name in the HTTP API.
// Normalizing a normalized request changes nothing. Acquire calls Normalize.
func (r Request) Normalize() (Request, error) {
	var invalid fault.Fields

	r.Kind = r.Key().normalize(&invalid).Kind
	r.TTL = normalizeTTL(&invalid, r.TTL)
	if r.Wait < 0 || r.Wait > MaxWait {
		invalid.Add("wait_ms", "must be 0 to %d", MaxWait.Milliseconds())
	}
	if r.Token == "" {
		r.Token = rand.Text()
	}
	checkToken(&invalid, r.Token)
	if !utf8.ValidString(r.Owner) || len(r.Owner) > MaxOwner || strings.ContainsFunc(r.Owner, isControl) {
		invalid.Add("owner", "must be at most %d bytes of UTF-8 without control characters", MaxOwner)
	}
	r.Metadata = normalizeMetadata(&invalid, r.Metadata)
	r.Mode = normalizeMode(&invalid, r.Kind, r.Mode)
	checkCapacity(&invalid, r.Kind, r.Capacity)

	return r, invalid.Err()
}

// Normalize fills in the default kind. It returns a [fault.InvalidRequest] error if the kind or the
// name is invalid.
func (k Key) Normalize() (Key, error) {
	var invalid fault.Fields
	k = k.normalize(&invalid)
	return k, invalid.Err()
}

// NormalizeRenewal fills in the defaults of the arguments of Renew. It returns a
// [fault.InvalidRequest] error that lists every invalid argument by its name in the HTTP API.
func NormalizeRenewal(key Key, token string, ttl time.Duration) (Key, time.Duration, error) {
	var invalid fault.Fields
	key = key.normalize(&invalid)
	requireToken(&invalid, token)
	ttl = normalizeTTL(&invalid, ttl)
	return key, ttl, invalid.Err()
}

// NormalizeRelease does the same as [NormalizeRenewal] for the arguments of Release.
func NormalizeRelease(key Key, token string) (Key, error) {
	var invalid fault.Fields
	key = key.normalize(&invalid)
	requireToken(&invalid, token)
	return key, invalid.Err()
}

// RefuseSemaphore returns a [fault.InvalidRequest] error if kind is Semaphore. Stores that do not
// support semaphores call it.
func RefuseSemaphore(kind Kind) error {
	if kind == Semaphore {
		return fault.Invalid("kind", "must be %q: this store has no semaphores", Lock)
	}
	return nil
}

func (k Key) normalize(invalid *fault.Fields) Key {
	switch k.Kind {
	case "":
		k.Kind = Lock
	case Lock, Semaphore:
	default:
		invalid.Add("kind", "must be %q or %q", Lock, Semaphore)
	}
	invalid.CheckName("name", k.Name)
	return k
}

func normalizeTTL(invalid *fault.Fields, ttl time.Duration) time.Duration {
	if ttl == 0 {
		return DefaultTTL
	}
	if ttl < MinTTL || ttl > MaxTTL {
		invalid.Add("ttl_ms", "must be %d to %d", MinTTL.Milliseconds(), MaxTTL.Milliseconds())
	}
	return ttl
}

func requireToken(invalid *fault.Fields, token string) {
	if token == "" {
		invalid.Add("token", "is required")
		return
	}
	checkToken(invalid, token)
}

func checkToken(invalid *fault.Fields, token string) {
	if len(token) < MinToken || len(token) > MaxToken {
		invalid.Add("token", "must be %d to %d characters long", MinToken, MaxToken)
		return
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			invalid.Add("token", "must be printable ASCII without spaces")
			return
		}
	}
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// normalizeMetadata returns the object without white space, or nil if metadata is empty or null.
func normalizeMetadata(invalid *fault.Fields, metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 || string(metadata) == "null" {
		return nil
	}

	var object map[string]json.RawMessage
	if err := json.Unmarshal(metadata, &object); err != nil {
		invalid.Add("metadata", "must be an object")
		return nil
	}

	compact, err := json.Marshal(object)
	if err != nil || len(compact) > MaxMetadata {
		invalid.Add("metadata", "must be at most %d bytes of JSON", MaxMetadata)
		return nil
	}
	return compact
}

func normalizeMode(invalid *fault.Fields, kind Kind, mode Mode) Mode {
	switch {
	case kind == Semaphore && mode == "":
		return Shared
	case kind == Semaphore && mode != Shared:
		invalid.Add("mode", "must be %q for a semaphore", Shared)
	case mode == "":
		return Exclusive
	case mode != Exclusive && mode != Shared:
		invalid.Add("mode", `must be "exclusive" or "shared"`)
	}
	return mode
}

func checkCapacity(invalid *fault.Fields, kind Kind, capacity int64) {
	switch {
	case kind == Semaphore && (capacity < 1 || capacity > MaxCapacity):
		invalid.Add("capacity", "is required and must be 1 to %d", MaxCapacity)
	case kind != Semaphore && capacity != 0:
		invalid.Add("capacity", "is for semaphores only")
	}
}
