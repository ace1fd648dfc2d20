package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestBench(t *testing.T) {
	t.Parallel()
	t.Run("measures locks, jobs and limits", func(t *testing.T) {
		t.Parallel()
		limit := name("bench")
		_, err := connect(t).PutPolicy(t.Context(), client.Policy{
			Name: limit, Rules: []client.Rule{{
				Name: "r", Algorithm: client.AlgorithmTokenBucket, Limit: 5, Window: time.Second,
			}},
		})
		require.NoError(t, err)
		for _, args := range [][]string{{"bench", "locks"}, {"bench", "jobs", "quiet"},
			{"bench", "limits", limit, "--keys", "3"}} {
			var r struct {
				Calls  int            `json:"calls"`
				Errors map[string]int `json:"errors"`
				P50    float64        `json:"p50_ms"`
				Max    float64        `json:"max_ms"`
			}
			out := does(t, append(args, "--count", "20", "--concurrency", "4", "--json")...)
			require.NoError(t, json.Unmarshal([]byte(out), &r), out)
			require.Equal(t, 20, r.Calls, args)
			require.Empty(t, r.Errors, args)
			require.Positive(t, r.P50)
			require.GreaterOrEqual(t, r.Max, r.P50)
		}
		out := does(t, "bench", "locks", "--rate", "20", "--duration", "2s")
		require.Contains(t, out, "calls of lock + release in")
		require.Contains(t, out, "P99")
	})

	t.Run("reports an invalid command line before the load", func(t *testing.T) {
		t.Parallel()
		_, errOut, code := sluice(t, "bench", "jobs", "no-such-queue")
		require.Equal(t, 4, code)
		require.Contains(t, errOut, "no-such-queue")
		_, errOut, code = sluice(t, "bench", "locks", "--concurrency", "0")
		require.Equal(t, 2, code)
		require.Contains(t, errOut, "--concurrency must be 1 to 1000")
	})
}
