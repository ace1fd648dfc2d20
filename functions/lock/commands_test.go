package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommands counts the Redis commands of an uncontended lock: at most three to acquire and three
// to release it (docs/decisions/0010).
func TestCommands(t *testing.T) {
	t.Parallel()
	f := start(t)
	acquireAndRelease := func(path string) {
		lease := f.Want(t, 200, "POST", path+"/acquire", nil)
		f.Want(t, 200, "POST", path+"/release", object{"token": lease.Body["token"]})
	}
	acquireAndRelease(report) // loads the scripts
	for _, path := range []string{report, "/v1/locks/never-held"} {
		require.NoError(t, f.redis.Client.ConfigResetStat(t.Context()).Err())
		acquireAndRelease(path)
		stats, err := f.redis.Client.Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		calls := map[string]int{}
		for _, found := range regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
			calls[found[1]], err = strconv.Atoi(found[2])
			require.NoError(t, err)
		}
		require.Equal(t, 2, calls["evalsha"], "one script call to acquire and one to release")
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
