package telemetry_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/telemetry"
)

func TestEmit(t *testing.T) {
	t.Parallel()
	t.Run("writes the embedded metric format", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		m := telemetry.NewMetrics(&out, "dispatcher")
		m.Emit(map[string]string{"queue": "orders"},
			telemetry.One("dispatched", telemetry.Count, 3),
			telemetry.Metric{Name: "lateness", Unit: telemetry.Milliseconds, Values: []float64{1, 2.5}})

		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		aws, ok := line["_aws"].(map[string]any)
		require.True(t, ok)
		require.Positive(t, aws["Timestamp"])
		delete(aws, "Timestamp")
		golden, err := json.Marshal(line)
		require.NoError(t, err)
		require.JSONEq(t, `{
		"_aws": {"CloudWatchMetrics": [{
			"Namespace": "Sluice", "Dimensions": [["function", "queue"]],
			"Metrics": [{"Name": "dispatched", "Unit": "Count"}, {"Name": "lateness", "Unit": "Milliseconds"}]}]},
		"function": "dispatcher", "queue": "orders", "dispatched": 3, "lateness": [1, 2.5]}`, string(golden))
		require.Equal(t, byte('\n'), out.Bytes()[out.Len()-1], "one line per call")
	})

	t.Run("no metric: writes nothing", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		telemetry.NewMetrics(&out, "lock").Emit(nil)
		require.Empty(t, out.String())
	})
}

func TestNewLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, "warn", "lock")
	log.Info("quiet")
	log.Warn("loud", "request_id", "r1")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "loud", line["msg"])
	require.Equal(t, "lock", line["function"])
	require.Equal(t, "r1", line["request_id"])
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, d := range telemetry.Catalogue() {
		require.NotContains(t, seen, d.Function+"/"+d.Name)
		seen[d.Function+"/"+d.Name] = true
		require.NotEmpty(t, d.Description)
		require.LessOrEqual(t, len(d.Dimensions), 1)
		for _, dimension := range d.Dimensions {
			require.Contains(t, []string{"queue", "outcome"}, dimension,
				"with a dimension that callers choose, every value would create a metric")
		}
	}
}
