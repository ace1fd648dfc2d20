package locktest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

func argumentTests() map[string]func(*testing.T, Store) {
	return map[string]func(*testing.T, Store){
		"Acquire refuses each invalid field":        refusesInvalidRequests,
		"every method refuses an invalid key":       refusesInvalidKeys,
		"Renew and Release refuse an invalid token": refusesInvalidTokens,
		"Renew refuses a TTL out of range":          refusesInvalidTTLs,
		"the kind defaults to a lock":               defaultsTheKind,
		"Renew with a TTL of 0 uses the default":    defaultsTheTTL,
		"a refused request changes nothing":         changesNothing,
	}
}

// callsOn returns one call of each method, keyed by the name of the method.
func callsOn(ctx context.Context, s Store, key lock.Key, token string, ttl time.Duration) map[string]func() error {
	req := lock.Request{Kind: key.Kind, Name: key.Name, Token: token, TTL: ttl}
	if key.Kind == lock.Semaphore {
		req.Capacity = 1
	}
	return map[string]func() error{
		"Acquire": func() error { _, err := s.Acquire(ctx, req); return err },
		"Renew":   func() error { _, err := s.Renew(ctx, key, token, ttl); return err },
		"Release": func() error { _, err := s.Release(ctx, key, token); return err },
		"Force":   func() error { _, err := s.Force(ctx, key); return err },
		"Inspect": func() error { _, err := s.Inspect(ctx, key); return err },
	}
}

// requireInvalid requires that err is a [fault.InvalidRequest] error for this field only.
func requireInvalid(t testing.TB, err error, field string) {
	t.Helper()
	f := RequireFault(t, err, fault.InvalidRequest)
	require.Len(t, f.Fields, 1)
	require.Equal(t, field, f.Fields[0].Field)
}

func refusesInvalidRequests(t *testing.T, s Store) {
	for field, reqs := range InvalidRequests() {
		for _, req := range reqs {
			_, err := s.Acquire(t.Context(), req)
			requireInvalid(t, err, field)
		}
	}
}

// InvalidRequests returns requests that each have one invalid field, keyed by the field's name in
// the HTTP API.
func InvalidRequests() map[string][]lock.Request {
	return map[string][]lock.Request{
		"kind":     {{Kind: "semaphore", Name: "n"}},
		"name":     {{}, {Name: "no/slash"}},
		"ttl_ms":   {{Name: "n", TTL: -1}, {Name: "n", TTL: lock.MinTTL - 1}, {Name: "n", TTL: lock.MaxTTL + 1}},
		"wait_ms":  {{Name: "n", Wait: -1}, {Name: "n", Wait: lock.MaxWait + 1}},
		"token":    {{Name: "n", Token: "short"}, {Name: "n", Token: "sixteen letters and"}},
		"owner":    {{Name: "n", Owner: "two\nlines"}, {Name: "n", Owner: strings.Repeat("o", lock.MaxOwner+1)}},
		"metadata": {{Name: "n", Metadata: []byte(`[1]`)}},
		"mode":     {{Name: "n", Mode: "greedy"}},
		"capacity": {{Name: "n", Capacity: 1}},
	}
}

func refusesInvalidKeys(t *testing.T, s Store) {
	for field, key := range map[string]lock.Key{"kind": {Kind: "semaphore", Name: "n"}, "name": {Name: "-"}} {
		for _, call := range callsOn(t.Context(), s, key, newToken(), ttl) {
			requireInvalid(t, call(), field)
		}
	}
}

func refusesInvalidTokens(t *testing.T, s Store) {
	key := lock.Key{Name: newName()}
	for _, token := range []string{"", "short", "sixteen letters and"} {
		_, err := s.Renew(t.Context(), key, token, ttl)
		requireInvalid(t, err, "token")
		_, err = s.Release(t.Context(), key, token)
		requireInvalid(t, err, "token")
	}
}

// Redis counts in milliseconds. The library bsm/redislock sends Refresh with a TTL of 500 µs as
// PEXPIRE 0, which deletes the key.
func refusesInvalidTTLs(t *testing.T, s Store) {
	lease := acquire(t, s, lock.Request{Name: newName()})
	for _, ttl := range []time.Duration{-1, 1, 500 * time.Microsecond, lock.MinTTL - 1, lock.MaxTTL + 1} {
		_, err := s.Renew(t.Context(), lease.Key, lease.Token, ttl)
		requireInvalid(t, err, "ttl_ms")
	}
	require.True(t, inspect(t, s, lease.Key).Held)
}

func defaultsTheKind(t *testing.T, s Store) {
	key, token := lock.Key{Name: newName()}, newToken()
	for _, method := range []string{"Acquire", "Renew", "Inspect", "Release", "Force"} {
		require.NoError(t, callsOn(t.Context(), s, key, token, ttl)[method](), method)
	}
	require.Equal(t, lock.Lock, inspect(t, s, key).Kind)
}

func defaultsTheTTL(t *testing.T, s Store) {
	lease := acquire(t, s, lock.Request{Name: newName(), TTL: lock.MinTTL * 5})
	renewed, err := s.Renew(t.Context(), lease.Key, lease.Token, 0)
	require.NoError(t, err)
	require.Equal(t, lock.DefaultTTL, renewed.TTL)
	requireLonger(t, lease.ExpiresAt, renewed.ExpiresAt, lock.DefaultTTL-5*lock.MinTTL)
}

func changesNothing(t *testing.T, s Store) {
	name := newName()
	_, err := s.Acquire(t.Context(), lock.Request{Name: name, TTL: 1})
	requireInvalid(t, err, "ttl_ms")
	require.False(t, inspect(t, s, lock.Key{Name: name}).Held)
}
