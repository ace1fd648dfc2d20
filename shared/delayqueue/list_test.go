package delayqueue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestList(t *testing.T) {
	t.Parallel()
	// bullmq #4608: an unbounded list overloaded Redis.
	t.Run("the pages contain every job once", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			q, queue := newQueues(t, r, Config{}), redistest.Name("list")
			for n := range 95 {
				put(t, q, queue, simple(fmt.Sprintf("job-%d", n), time.Hour))
			}
			seen := make(map[string]bool)
			for cursor, pages := "", 0; ; pages++ {
				page, err := q.List(t.Context(), queue, ListOptions{State: Scheduled, Limit: 20, Cursor: cursor})
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Jobs), 20)
				require.Less(t, pages, 20)
				for _, j := range page.Jobs {
					require.False(t, seen[j.ID], j.ID)
					seen[j.ID] = true
				}
				if cursor = page.NextCursor; cursor == "" {
					break
				}
			}
			require.Len(t, seen, 95)
			_, err := q.List(t.Context(), queue, ListOptions{State: Scheduled, Limit: 20, Cursor: "not a cursor"})
			require.ErrorIs(t, err, ErrInvalid)
		})
	})

	// One call must not read all finished jobs if few of them are in the requested state.
	t.Run("a page of a rare state reads a bounded part of the finished jobs", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		q := newClocked(t, r, Config{Shards: 1})
		const jobs = 4000
		for n := 0; n < jobs; n += MaxBatch {
			putAll(t, q.Queues, "orders", batchOf(n))
		}
		_, err := q.Cancel(t.Context(), "orders", "job-7")
		require.NoError(t, err)
		for claimed := claimAll(t, q.Queues, "orders"); len(claimed) > 0; claimed = claimAll(t, q.Queues, "orders") {
			_, err := q.Accept(t.Context(), "orders", 0, claimed)
			require.NoError(t, err)
		}
		require.NoError(t, r.Client.ConfigResetStat(t.Context()).Err())
		page, err := q.List(t.Context(), "orders", ListOptions{State: Expired, Limit: 2})
		require.NoError(t, err)
		require.NotEmpty(t, page.NextCursor, "other finished jobs follow")
		stats, err := r.Client.Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		var calls int
		_, rest, _ := strings.Cut(stats, "cmdstat_hmget:calls=")
		_, err = fmt.Sscanf(rest, "%d", &calls)
		require.NoError(t, err)
		require.LessOrEqual(t, calls, 5)
		var found []Info
		for cursor := ""; ; {
			page, err := q.List(t.Context(), "orders", ListOptions{State: Canceled, Limit: 2, Cursor: cursor})
			require.NoError(t, err)
			if found = append(found, page.Jobs...); page.NextCursor == "" {
				break
			}
			cursor = page.NextCursor
		}
		require.Len(t, found, 1, "the pages together contain the job")
	})
}
