package redisconn_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/redisconn"
)

func TestSlot(t *testing.T) {
	t.Parallel()
	r := redistest.Cluster(t)
	slot := func(key string) int {
		n, err := r.Client.ClusterKeySlot(t.Context(), key).Result()
		require.NoError(t, err)
		return int(n)
	}
	for _, key := range []string{"", "a", "{a}", "{}", "{}{a}", "{{a}}", "x{a}y", "x{a", "x}a{b}",
		"{lock:report}:queue", "é", "\x00\xff"} {
		require.Equal(t, slot(key), redisconn.Slot(key), "%q", key)
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-c{}é]{0,12}`).Draw(t, "key")
		require.Equal(t, slot(key), redisconn.Slot(key))
	})
}
