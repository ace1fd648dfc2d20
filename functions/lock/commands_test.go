package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/decisions/0010 says why.
func TestAnUncontendedLockIsOneCallOfAtMostThreeCommandsEachWay(t *testing.T) {
	t.Parallel()
	f := start(t)
	once := func(path string) {
		lease := f.Want(t, 200, "POST", path+"/acquire", nil)
		f.Want(t, 200, "POST", path+"/release", object{"token": lease.Body["token"]})
	}
	once(report)                                             // the scripts are loaded
	for _, path := range []string{report, "/v1/locks/new"} { // one that was held before, and one that never was
		require.NoError(t, f.redis.Client.ConfigResetStat(t.Context()).Err())
		once(path)
		stats, err := f.redis.Client.Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		calls := map[string]int{}
		for _, found := range regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
			calls[found[1]], err = strconv.Atoi(found[2])
			require.NoError(t, err)
		}
		require.Equal(t, 2, calls["evalsha"], "one call each way")
		sum := 0
		for name, n := range calls {
			if name != "evalsha" && name != "config|resetstat" && name != "info" {
				sum += n
			}
		}
		require.LessOrEqual(t, sum, 6, "%v", calls)
		require.Positive(t, sum)
	}
}
