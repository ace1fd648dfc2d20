package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/sluicehq/sluice/bench/report"
)

// handlerOverhead runs the benchmark that stands beside the handler, since a function's package cannot be imported.
func handlerOverhead(ctx context.Context, s *suite) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "BenchmarkHandlerOverhead", "-benchtime", fmt.Sprintf("%dx", s.size(20_000, 4_000)), "./functions/limit")
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("error running the handler's benchmark: %w\n%s", err, out)
	}
	fields := strings.Fields(string(out))
	for i, f := range fields {
		if f != "overhead-µs" || i == 0 {
			continue
		}
		var value float64
		if _, err := fmt.Sscanf(fields[i-1], "%f", &value); err != nil {
			return fmt.Errorf("error reading the handler's benchmark: %w", err)
		}
		s.add(report.Row{
			ID: "P12", Work: "HTTP handler on top of the domain call", Against: "itself", Ours: fmt.Sprintf("%.1f µs", value), Value: value, Unit: "µs", AtMost: 40,
		}, "")
		return nil
	}
	return fmt.Errorf("the handler's benchmark reported no overhead:\n%s", out)
}
