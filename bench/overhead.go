package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
)

// handlerOverhead runs BenchmarkHandlerOverhead in several rounds. The benchmark is in the
// handler's package, which is a main package and cannot be imported.
func handlerOverhead(ctx context.Context, s *suite) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "BenchmarkHandlerOverhead", "-benchtime",
		fmt.Sprintf("%dx", s.size(5_000, 1_500)),
		"-count", strconv.Itoa(s.plan.Rounds), "./functions/limit")
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("error running the handler's benchmark: %w\n%s", err, out)
	}
	overhead, decision := metrics(string(out), "overhead-µs"), metrics(string(out), "decision-µs")
	if len(overhead) == 0 || len(decision) != len(overhead) {
		return fmt.Errorf("the handler's benchmark reported no overhead:\n%s", out)
	}
	value := measure.Quantile(overhead, 0.5)
	s.add(report.Row{
		ID: "P12", Work: "HTTP handler on top of the domain call", Against: "itself",
		Ours: fmt.Sprintf("%.1f µs", value), Value: value, Unit: "µs", AtMost: 40,
		Low: slices.Min(overhead), High: slices.Max(overhead),
	}, fmt.Sprintf("P12: the decision itself, one call to Redis, took %.0f µs in the same rounds.",
		measure.Quantile(decision, 0.5)))
	return nil
}

// metrics returns the values of one metric from a Go benchmark's output.
func metrics(output, unit string) (values []float64) {
	fields := strings.Fields(output)
	for i := 1; i < len(fields); i++ {
		if v, err := strconv.ParseFloat(fields[i-1], 64); err == nil && fields[i] == unit {
			values = append(values, v)
		}
	}
	return values
}
