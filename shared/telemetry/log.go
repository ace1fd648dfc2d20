// Package telemetry is what Sluice tells its operators: JSON log lines and CloudWatch metrics in
// the embedded metric format.
package telemetry

import (
	"io"
	"log/slog"
	"strings"
)

// NewLogger writes one JSON object a line to w. level is "debug", "info" (default), "warn" or
// "error".
func NewLogger(w io.Writer, level, function string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
		l = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})).With("function", function)
}
