// Package telemetry writes the functions' logs, as JSON lines, and their metrics, in CloudWatch's
// embedded metric format.
package telemetry

import (
	"io"
	"log/slog"
	"strings"
)

// NewLogger returns a logger that writes JSON lines to w. Each line has the attribute "function".
// The level is "debug", "info", "warn" or "error"; any other value means "info".
func NewLogger(w io.Writer, level, function string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
		l = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})).With("function", function)
}
