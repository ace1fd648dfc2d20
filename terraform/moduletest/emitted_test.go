package moduletest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/telemetry"
)

// awaited are the gauges that the module already watches and shared/dispatch does not emit: alarms on them are silent. The list must become empty,
// here and in localstack/e2e/telemetry.
func awaited() []string {
	return []string{
		"depth", "oldest_due", "dead", "outbox",
		"used_memory", "maxmemory", "connected_clients", "blocked_clients", "evicted_keys", "instantaneous_ops_per_sec",
	}
}

func TestEveryMetricIsMentionedByTheFunctionsThatEmitIt(t *testing.T) {
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
		if slices.Contains(awaited(), d.Name) {
			continue
		}
		require.True(t, strings.Contains(code.String(), `"`+d.Name+`"`), "no function emits %s", d.Name) //nolint:testifylint // all the code would be printed
	}
	for _, name := range matches(code.String(), `telemetry\.One\("(\w+)"`) {
		require.True(t, slices.ContainsFunc(telemetry.Catalogue(), func(d telemetry.Definition) bool { return d.Name == name }), "%s is not in the catalogue", name)
	}
}
