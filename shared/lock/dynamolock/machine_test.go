package dynamolock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/lock"
)

const margin = 500

func TestWhatACallGotIsGivenBackUnlessTheTokenAskedAgain(t *testing.T) {
	t.Parallel()
	var r record
	_, _, in := r.acquire(holder{Token: "t", Call: "first", Mode: lock.Exclusive, Ends: 1000}, 0, margin)
	require.Nil(t, in)
	require.False(t, r.giveUp("t", "another"))
	_, again, in := r.acquire(holder{Token: "t", Call: "second", Mode: lock.Exclusive, Ends: 2000}, 10, margin)
	require.Nil(t, in)
	require.True(t, again)
	require.False(t, r.giveUp("t", "second"), "the first call's lease stays")
	require.False(t, r.giveUp("t", "first"), "and the second one's renewal of it too")
	_, _, in = r.acquire(holder{Token: "u", Call: "third", Mode: lock.Exclusive, Ends: 9000}, 2000+margin, margin)
	require.Nil(t, in)
	require.True(t, r.giveUp("u", "third"))
	require.Empty(t, r.Holders)
}

func TestALeaseThatRanOutStillKeepsOthersOutForAMarginButIsNotRenewed(t *testing.T) {
	t.Parallel()
	var r record
	first, _, _ := r.acquire(holder{Token: "t", Mode: lock.Exclusive, Ends: 1000}, 0, margin)
	for now, free := range map[int64]bool{999: false, 1000: false, 1000 + margin - 1: false, 1000 + margin: true} {
		c := record{Fence: r.Fence, Holders: append([]holder(nil), r.Holders...)}
		next, _, in := c.acquire(holder{Token: "u", Mode: lock.Exclusive, Ends: now + 1000}, now, margin)
		require.Equal(t, free, in == nil, "at %d", now)
		if free {
			require.Greater(t, next.Fence, first.Fence)
		}
	}
	_, why := r.renew("t", 1000, 5000, margin)
	require.Equal(t, expired, why)
}

func TestFencesRiseWhateverTheClocksSay(t *testing.T) {
	t.Parallel()
	var r record
	last := int64(0)
	for _, now := range []int64{5000, 100, 5000, 6000, 1} {
		r.force(1<<50, 0)
		got, _, in := r.acquire(holder{Token: "t", Mode: lock.Exclusive, Ends: now + 1}, now, 0)
		require.Nil(t, in)
		require.Greater(t, got.Fence, last)
		last = got.Fence
		r.Holders = nil
	}
}
