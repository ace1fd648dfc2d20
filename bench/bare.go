package main

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
)

// bareCommands is the name of the baseline contender. This contender runs the same Redis commands
// as Sluice's script, from Sluice's own client, but makes no decisions in Lua or in Go.
const bareCommands = "bare commands"

// bareScript returns a Lua script that makes one Redis call for each command and returns the number
// 1. A command is the list of the call's arguments in Lua's syntax, such as: 'GET', KEYS[1].
func bareScript(commands ...string) *redis.Script {
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "redis.call(%s) ", c)
	}
	return redis.NewScript(b.String() + "return 1")
}

// versus is a contender to compare Sluice with. target is the minimum ratio of Sluice's rate to the
// contender's rate, and note is the number of the row's footnote.
type versus struct {
	name   string
	target float64
	note   int
}

// ratios adds one row for each of the given contenders. It then adds one row that compares Sluice
// with the bare commands. This row helps to explain a missed target.
func (s *suite) ratios(id, work string, samples measure.Samples, against ...versus) {
	share, low, high := samples.Ratio("sluice", bareCommands)
	for _, a := range against {
		ceiling, _, _ := samples.Ratio(bareCommands, a.name)
		s.ratio(id, work, samples, a.name, a.target, a.note, fmt.Sprintf(
			"%s against %s: the bare commands, from Sluice's client and without decisions, reach %.2f× the contender's rate; Sluice reaches %.2f× the rate of the bare commands.",
			work, a.name, ceiling, share))
	}
	s.add(report.Row{
		ID: id, Work: work, Against: bareCommands, Ours: report.Rate(samples.Median("sluice")),
		Theirs: report.Rate(samples.Median(bareCommands)),
		Value:  share, Low: low, High: high,
		Note: s.note("Only the Redis commands that Sluice's scripts run for this work, from Sluice's own client. The row has no target: it shows the cost of the commands alone."),
	}, "")
}
