package table_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func TestTable(t *testing.T) {
	t.Parallel()
	t.Run("aligns columns of any width and colour", func(t *testing.T) {
		t.Parallel()
		for _, colour := range []bool{false, true} {
			tab := table.New(colour, "NAME", "COUNT", "NOTE")
			tab.Row(table.Text("ä"), table.Cell{Text: "7", Right: true}, table.Cell{Text: "down", Colour: table.Red})
			tab.Row(table.Text("longer"), table.Cell{Text: "1234567", Right: true}, table.Text(""))
			var b strings.Builder
			require.NoError(t, tab.Write(&b))
			got := b.String()
			if colour {
				require.Contains(t, got, "\x1b[31mdown\x1b[0m")
				for _, code := range []string{"\x1b[31m", "\x1b[2m", "\x1b[0m"} {
					got = strings.ReplaceAll(got, code, "")
				}
			}
			require.Equal(t, "NAME      COUNT  NOTE\nä             7  down\nlonger  1234567\n", got)
		}
	})

	t.Run("removes control characters", func(t *testing.T) {
		t.Parallel()
		tab := table.New(true)
		tab.Row(table.Text("a\x1b[2Jb\nc\td\u009be"))
		var b strings.Builder
		require.NoError(t, tab.Write(&b))
		require.Equal(t, "a [2Jb c d e\n", b.String())
	})
}
