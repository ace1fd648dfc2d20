package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/bench/report"
)

func TestTheCheckFailsWhenARatioIsBelowItsBoundAndNamesIt(t *testing.T) {
	t.Parallel()
	const slack = 0.4
	for name, c := range map[string]struct {
		row   report.Row
		fails bool
	}{
		"at the target":                    {report.Row{Value: 1.2, AtLeast: 1.2}, false},
		"a little below the target":        {report.Row{Value: 0.9, AtLeast: 1.2}, false},
		"just above the loosened minimum":  {report.Row{Value: 0.49, AtLeast: 1.2}, false},
		"below the loosened minimum":       {report.Row{Value: 0.47, AtLeast: 1.2}, true},
		"zero":                             {report.Row{Value: 0, AtLeast: 1.2}, true},
		"a little above the maximum":       {report.Row{Value: 0.6, AtMost: 0.5}, false},
		"just within the loosened maximum": {report.Row{Value: 1.24, AtMost: 0.5}, false},
		"above the loosened maximum":       {report.Row{Value: 1.26, AtMost: 0.5}, true},
		"a row without a target":           {report.Row{Value: 0.01}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.row.ID, c.row.Work, c.row.Against = "P7", "enqueue one", "asynq"
			fine := report.Row{ID: "P4", Value: 3, AtLeast: 2.5}
			err := report.Check([]report.Row{fine, c.row, fine}, slack)
			if !c.fails {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "P7 enqueue one against asynq")
			require.NotContains(t, err.Error(), "P4")
		})
	}
}

func TestAMissedTargetIsShownWithTheNoteThatExplainsIt(t *testing.T) {
	t.Parallel()
	document := report.Document{
		Rows: []report.Row{
			{ID: "P1", Work: "lock", Against: "floor", Value: 0.8, AtLeast: 0.85, Note: 1, WhyNote: 2},
			{ID: "P3", Work: "check", Against: "floor", Value: 0.9, AtLeast: 0.85},
			{ID: "P3", Work: "check", Against: "its commands", Value: 0.9},
		},
		Notes: []string{"what differs", "why"},
	}.Markdown()
	for _, line := range []string{"| floor (1) | | | 0.80× | | ≥ 0.85× | missed (2) |", "| 0.90× | | ≥ 0.85× | met |",
		"| its commands | | | 0.90× | | | |", "2. why"} {
		require.Contains(t, strings.Join(strings.Fields(document), " "), line)
	}
}
