package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/internal/locktest"
	"github.com/sluicehq/sluice/shared/lock"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	t.Run("fills in the defaults", func(t *testing.T) {
		t.Parallel()
		req, err := lock.Request{Name: "report"}.Normalize()
		require.NoError(t, err)
		require.Len(t, req.Token, 26, "128 random bits in base 32")
		req.Token = ""
		require.Equal(t, lock.Request{Kind: lock.Lock, Name: "report", Mode: lock.Exclusive, TTL: lock.DefaultTTL}, req)

		req, err = lock.Request{Kind: lock.Semaphore, Name: "pool", Capacity: 2}.Normalize()
		require.NoError(t, err)
		require.Equal(t, lock.Shared, req.Mode)
	})

	t.Run("changes nothing in a normalized request", func(t *testing.T) {
		t.Parallel()
		for _, req := range []lock.Request{
			{Name: "report", Metadata: []byte(`{ "a": [ 1 ] }`), Owner: "ann", Wait: time.Second},
			{Name: "report", Mode: lock.Shared},
			{Kind: lock.Semaphore, Name: "pool", Capacity: lock.MaxCapacity},
		} {
			once, err := req.Normalize()
			require.NoError(t, err)
			twice, err := once.Normalize()
			require.NoError(t, err)
			require.Equal(t, once, twice)
		}
	})

	// Redis counts in milliseconds. The library bsm/redislock sends Refresh with a TTL of 500 µs as
	// PEXPIRE 0, which deletes the key.
	t.Run("refuses a TTL out of range", func(t *testing.T) {
		t.Parallel()
		key, token := lock.Key{Name: "report"}, strings.Repeat("t", lock.MinToken)
		for _, ttl := range []time.Duration{
			-time.Second, time.Nanosecond, 500 * time.Microsecond, lock.MinTTL - 1, lock.MaxTTL + 1,
		} {
			_, err := lock.Request{Name: "report", TTL: ttl}.Normalize()
			require.Equal(t, fault.InvalidRequest, fault.CodeOf(err), "%s", ttl)
			_, _, err = lock.NormalizeRenewal(key, token, ttl)
			require.Equal(t, fault.InvalidRequest, fault.CodeOf(err), "%s", ttl)
		}
		for _, ttl := range []time.Duration{lock.MinTTL, lock.MaxTTL} {
			_, err := lock.Request{Name: "report", TTL: ttl}.Normalize()
			require.NoError(t, err)
			_, _, err = lock.NormalizeRenewal(key, token, ttl)
			require.NoError(t, err)
		}
	})

	t.Run("names the invalid field", func(t *testing.T) {
		t.Parallel()
		invalid := locktest.InvalidRequests()
		invalid["capacity"] = append(invalid["capacity"],
			lock.Request{Name: "n", Kind: lock.Semaphore},
			lock.Request{Name: "n", Kind: lock.Semaphore, Capacity: -1},
			lock.Request{Name: "n", Kind: lock.Semaphore, Capacity: lock.MaxCapacity + 1})
		invalid["mode"] = append(invalid["mode"],
			lock.Request{Name: "n", Kind: lock.Semaphore, Capacity: 1, Mode: lock.Exclusive})
		for field, reqs := range invalid {
			for _, req := range reqs {
				_, err := req.Normalize()
				f := locktest.RequireFault(t, err, fault.InvalidRequest)
				require.Len(t, f.Fields, 1, field)
				require.Equal(t, field, f.Fields[0].Field)
			}
		}
	})

	t.Run("names all invalid fields in one error", func(t *testing.T) {
		t.Parallel()
		_, err := lock.Request{Name: "-", TTL: 1, Wait: -1, Token: "x", Owner: "\n", Mode: "x"}.Normalize()
		var names []string
		for _, f := range locktest.RequireFault(t, err, fault.InvalidRequest).Fields {
			names = append(names, f.Field)
		}
		require.Equal(t, []string{"name", "ttl_ms", "wait_ms", "token", "owner", "mode"}, names)
	})
}
