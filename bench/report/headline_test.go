package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/bench/report"
)

func TestReplaceHeadlines(t *testing.T) {
	t.Parallel()
	rows := []report.Row{
		{ID: "P4", Work: "check, three rules", Against: "redis_rate ×3", Ours: "11.7 k/s", Theirs: "4.0 k/s", Value: 3},
		{ID: "P10", Work: "lateness at 1000 jobs/s, p99", Against: "asynq", Ours: "10.00 ms", Theirs: "5000.00 ms",
			Value: 10, Unit: "ms"},
		{ID: "P4", Work: "check, three rules", Against: "another", Ours: "not shown"},
	}

	t.Run("replaces the table between the marks and nothing else", func(t *testing.T) {
		t.Parallel()
		before := "# Title\n<!-- headlines: written by make bench -->\nold\n<!-- end of headlines -->\nrest\n"
		after, err := report.ReplaceHeadlines(before, rows)
		require.NoError(t, err)
		require.Contains(t, after, "| 11.7 k/s | 4.0 k/s | 3.00× |")
		require.Contains(t, after, "| 10.00 ms | 5000.00 ms | 500× sooner |")
		require.NotContains(t, after, "old")
		require.NotContains(t, after, "not shown")
		require.Regexp(t, `(?s)^# Title\n.*\nrest\n$`, after)

		again, err := report.ReplaceHeadlines(after, rows)
		require.NoError(t, err)
		require.Equal(t, after, again)
	})

	t.Run("fails without marks", func(t *testing.T) {
		t.Parallel()
		_, err := report.ReplaceHeadlines("# Title\n", rows)
		require.ErrorContains(t, err, "headlines: written by make bench")
	})
}
