package lock

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
)

func TestMajorityError(t *testing.T) {
	t.Parallel()
	ok := result[int]{}
	expired, other := result[int]{err: NotHeld(Expired)}, result[int]{err: NotHeld(HeldByOther)}
	down := result[int]{err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		results []result[int]
		code    fault.Code
		reason  Reason
	}{
		"a majority succeeded":            {[]result[int]{ok, down, ok}, "", ""},
		"one refusal and one success":     {[]result[int]{ok, expired, down}, fault.StoreUnavailable, ""},
		"no majority can hold the lock":   {[]result[int]{ok, expired, expired}, fault.LockNotHeld, Expired},
		"one node has another holder":     {[]result[int]{expired, other, down}, fault.LockNotHeld, HeldByOther},
		"no majority replied":             {[]result[int]{down, down, ok}, fault.StoreUnavailable, ""},
		"four nodes, half of them refuse": {[]result[int]{ok, ok, expired, expired}, fault.LockNotHeld, Expired},
	} {
		err := majorityError(tc.results)
		require.Equal(t, tc.code, fault.CodeOf(err), "%s: %v", name, err)
		require.Equal(t, tc.reason, ReasonOf(err), name)
	}
}
