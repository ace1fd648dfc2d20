package moduletest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/telemetry"
)

// emitted reports whether the Lambda function emits the metric with exactly these dimensions and
// the dimension "function". CloudWatch finds a metric only by all its dimensions.
func emitted(function, name string, dimensions ...string) bool {
	return slices.ContainsFunc(telemetry.Catalogue(), func(d telemetry.Definition) bool {
		return d.Function == function && d.Name == name && slices.Equal(d.Dimensions, dimensions)
	})
}

// TestAlarms checks that each alarm watches a metric that the code emits, with the same dimensions.
func TestAlarms(t *testing.T) {
	t.Parallel()
	text := module(t, "alarms.tf")
	var watched int
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "namespace   = local.metrics_namespace, metric") {
			continue
		}
		watched++
		name := matches(line, `metric = "(\w+)"`)
		require.Len(t, name, 1, line)
		function := "dispatcher"
		if f := matches(line, `function = "(\w+)"`); len(f) > 0 {
			function = f[0]
		}
		var dimensions []string
		if strings.Contains(line, "queue = name") {
			dimensions = []string{"queue"}
		}
		require.True(t, emitted(function, name[0], dimensions...), "no function emits the metric of this alarm: %s",
			line)
	}
	require.GreaterOrEqual(t, watched, 7)
	for _, metrics := range matches(text, `(?m)^\s+metrics\s+= \{ (.*) \}$`) {
		for _, name := range matches(metrics, `= "(\w+)"`) {
			watched++
			require.True(t, emitted("dispatcher", name), name)
		}
	}
	require.GreaterOrEqual(t, watched, 10)
}

// dashboard renders the template with fixed values and returns its widgets.
func dashboard(t *testing.T) []widget {
	t.Helper()
	text := strings.NewReplacer("${region}", "eu-central-1", "${name}", "sluice", "${namespace}", "Sluice/sluice",
		"${api_id}", "api", "$${", "${").
		Replace(module(t, "dashboard.json.tftpl"))
	require.NotContains(t, strings.ReplaceAll(text, "${PROP(", ""), "${", "a variable that dashboard.tf does not set")
	var board struct {
		Widgets []widget `json:"widgets"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &board))
	return board.Widgets
}

// widget is a widget of a CloudWatch dashboard.
type widget struct {
	Type          string `json:"type"`
	X, Y          int
	Width, Height int
	Properties    struct {
		Title   string  `json:"title"`
		Metrics [][]any `json:"metrics"`
	} `json:"properties"`
}

// search matches a CloudWatch search expression. Its groups are the dimension, the metric and the
// statistic.
var search = regexp.MustCompile(`^SEARCH\('\{"Sluice/sluice",function,(\w+)\} MetricName="(\w+)"', ` +
	`'(Sum|Maximum|Average|p50|p99)', 60\)$`)

func TestDashboard(t *testing.T) {
	t.Parallel()
	t.Run("shows exactly the metrics that the code emits", func(t *testing.T) {
		t.Parallel()
		shown := make(map[string]bool)
		for _, w := range dashboard(t) {
			for _, m := range w.Properties.Metrics {
				if options, ok := m[0].(map[string]any); ok {
					found := search.FindStringSubmatch(options["expression"].(string))
					require.NotNil(t, found, "%v", options["expression"])
					shown[found[2]] = true
					require.True(t, slices.ContainsFunc(telemetry.Catalogue(), func(d telemetry.Definition) bool {
						return d.Name == found[2] && slices.Equal(d.Dimensions, []string{found[1]})
					}), "no function emits %q with the dimension %s (%s)", found[2], found[1], w.Properties.Title)
					continue
				}
				if strings.HasPrefix(m[0].(string), "AWS/") {
					continue
				}
				require.Equal(t, []any{"Sluice/sluice", m[1], "function", m[3]}, m[:4])
				shown[m[1].(string)] = true
				require.True(t, emitted(m[3].(string), m[1].(string)), "no function emits %v (%s)", m[:4],
					w.Properties.Title)
			}
		}
		for _, d := range telemetry.Catalogue() {
			// The dashboard omits these two metrics: the record of each job shows the same events.
			if d.Name != "ack_timeouts" && d.Name != "pruned" {
				require.True(t, shown[d.Name], "no widget shows the metric %s", d.Name)
			}
		}
	})

	t.Run("places its widgets without overlap on the grid", func(t *testing.T) {
		t.Parallel()
		taken := make(map[[2]int]string)
		for _, w := range dashboard(t) {
			require.LessOrEqual(t, w.X+w.Width, 24, w.Properties.Title)
			for x := w.X; x < w.X+w.Width; x++ {
				for y := w.Y; y < w.Y+w.Height; y++ {
					require.Empty(t, taken[[2]int{x, y}], "%s covers another widget", w.Properties.Title)
					taken[[2]int{x, y}] = w.Type + w.Properties.Title
				}
			}
		}
	})
}
