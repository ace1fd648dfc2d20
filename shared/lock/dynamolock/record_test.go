package dynamolock

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/lock"
)

const margin = 500 * time.Microsecond

// at returns the instant at a number of microseconds after the epoch.
func at(us int64) instant { return instant{time.UnixMicro(us).UTC()} }

func exclusive(token, call string, ends instant) holder {
	return holder{Token: token, Call: call, Mode: lock.Exclusive, Ends: ends}
}

func TestRecordAcquire(t *testing.T) {
	t.Parallel()
	t.Run("ended lease: cannot be renewed, and excludes other holders until the margin has passed", func(t *testing.T) {
		t.Parallel()
		var r record
		first, _, _ := r.acquire(exclusive("t", "", at(1000)), at(0).Time, margin)
		end := time.UnixMicro(1000)
		for now, free := range map[time.Time]bool{
			end.Add(-time.Microsecond):         false,
			end:                                false,
			end.Add(margin - time.Microsecond): false,
			end.Add(margin):                    true,
		} {
			c := record{Fence: r.Fence, Holders: append([]holder(nil), r.Holders...)}
			next, _, conflict := c.acquire(exclusive("u", "", instant{now.Add(time.Millisecond)}), now, margin)
			require.Equal(t, free, conflict == nil, "at %s", now)
			if free {
				require.Greater(t, next.Fence, first.Fence)
			}
		}
		_, reason := r.renew("t", end, at(5000), margin)
		require.Equal(t, lock.Expired, reason)
	})

	t.Run("raises the fence regardless of the clock", func(t *testing.T) {
		t.Parallel()
		var r record
		last := int64(0)
		for _, now := range []int64{5000, 100, 5000, 6000, 1} {
			r.force(at(1<<50).Time, 0)
			got, _, conflict := r.acquire(exclusive("t", "", at(now+1)), at(now).Time, 0)
			require.Nil(t, conflict)
			require.Greater(t, got.Fence, last)
			last = got.Fence
			r.Holders = nil
		}
	})
}

func TestRecordAbandon(t *testing.T) {
	t.Parallel()
	var r record
	_, _, conflict := r.acquire(exclusive("t", "first", at(1000)), at(0).Time, margin)
	require.Nil(t, conflict)
	require.False(t, r.abandon("t", "another"))

	_, reacquired, conflict := r.acquire(exclusive("t", "second", at(2000)), at(10).Time, margin)
	require.Nil(t, conflict)
	require.True(t, reacquired)
	require.False(t, r.abandon("t", "second"), "the first call acquired the lease")
	require.False(t, r.abandon("t", "first"), "the second call extended the lease")

	_, _, conflict = r.acquire(exclusive("u", "third", at(9000)), at(2000).Add(margin), margin)
	require.Nil(t, conflict)
	require.True(t, r.abandon("u", "third"))
	require.Empty(t, r.Holders)
}

func TestRecordJSON(t *testing.T) {
	t.Parallel()
	r := record{
		Fence: 7,
		Holders: []holder{{
			Token: "t", Call: "c", Owner: "ann", Metadata: json.RawMessage(`{"a":1}`), Mode: lock.Exclusive,
			Fence: 7, Acquired: at(1000), Ends: at(2000),
		}},
		Ended: []ended{{Token: "u"}, {Token: "v", Forced: true}},
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"fence": 7,
		"holders": [{"token": "t", "call": "c", "owner": "ann", "metadata": {"a": 1}, "mode": "exclusive",
			"fence": 7, "acquired": 1000, "ends": 2000}],
		"ended": [{"token": "u"}, {"token": "v", "forced": true}]
	}`, string(text))
	var read record
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, r, read)
}
