package moduletest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/telemetry"
)

func TestCatalogue(t *testing.T) {
	t.Parallel()
	t.Run("lists exactly the metrics that the functions emit", func(t *testing.T) {
		t.Parallel()
		var code strings.Builder
		for _, folder := range []string{"functions", "shared"} {
			for path, text := range sources(t, folder) {
				if !strings.HasSuffix(path, "telemetry/catalogue.go") && strings.Contains(text, "shared/telemetry") {
					code.WriteString(text)
				}
			}
		}
		for _, d := range telemetry.Catalogue() {
			found := strings.Contains(code.String(), `"`+d.Name+`"`)
			require.True(t, found, "no function emits %s", d.Name) // require.Contains would print all the code
		}
		for _, name := range matches(code.String(), `telemetry\.One\("(\w+)"`) {
			require.True(t, slices.ContainsFunc(telemetry.Catalogue(), func(d telemetry.Definition) bool {
				return d.Name == name
			}), "%s is not in the catalogue", name)
		}
	})
}
