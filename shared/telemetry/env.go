package telemetry

import (
	"io"
	"log/slog"
)

// FromEnv makes what a function tells its operators with, both on out: the log at the level
// SLUICE_LOG_LEVEL, and metrics in the namespace SLUICE_METRICS_NAMESPACE. Two deployments in one
// account need different namespaces: else one's heartbeat would hide the other's silence.
func FromEnv(getenv func(string) string, out io.Writer, function string) (*slog.Logger, *Metrics) {
	metrics := NewMetrics(out, function)
	if namespace := getenv("SLUICE_METRICS_NAMESPACE"); namespace != "" {
		metrics.namespace = namespace
	}
	return NewLogger(out, getenv("SLUICE_LOG_LEVEL"), function), metrics
}
