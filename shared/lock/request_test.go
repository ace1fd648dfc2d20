package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

// redislock's Refresh(500 µs) became PEXPIRE 0, which deletes the key.
func TestTTLsUnderTheFloorAreRefused(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{-time.Second, time.Nanosecond, 500 * time.Microsecond, lock.MinTTL - 1,
		lock.MaxTTL + 1} {
		_, err := lock.Request{Name: "report", TTL: ttl}.Normalize()
		require.Equal(t, fault.InvalidRequest, fault.CodeOf(err), "%s", ttl)
		require.Equal(t, fault.InvalidRequest, fault.CodeOf(lock.CheckHeld("report", strings.Repeat("t", 16), ttl)),
			"%s", ttl)
	}
	for _, ttl := range []time.Duration{lock.MinTTL, lock.MaxTTL} {
		_, err := lock.Request{Name: "report", TTL: ttl}.Normalize()
		require.NoError(t, err)
	}
}

func TestEveryBadFieldOfARequestIsNamed(t *testing.T) {
	t.Parallel()
	for field, q := range map[string]lock.Request{
		"name":     {Name: "no/slash"},
		"ttl_ms":   {Name: "n", TTL: time.Millisecond},
		"wait_ms":  {Name: "n", Wait: lock.MaxWait + 1},
		"token":    {Name: "n", Token: "short"},
		"owner":    {Name: "n", Owner: "two\nlines"},
		"metadata": {Name: "n", Metadata: []byte(`[1]`)},
		"mode":     {Name: "n", Mode: "greedy"},
		"capacity": {Name: "n", Kind: lock.Semaphore},
	} {
		_, err := q.Normalize()
		var f *fault.Error
		require.ErrorAs(t, err, &f, field)
		require.Len(t, f.Fields, 1, field)
		require.Equal(t, field, f.Fields[0].Field)
	}
}
