// Command bench measures Sluice against its peers, on one machine in one run, and reports which
// targets are met.
//
//	cd bench && go run . [-quick] [-only P1,P5] [-check 0.4]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// suite holds the state that all families of benchmarks share.
type suite struct {
	plan     measure.Plan
	quick    bool
	progress func(string)
	plots    string // the folder for plots, or "" for none
	rows     []report.Row
	notes    []string
	drawn    [][2]string
	commit   string // the measured commit, from git describe; read first, because new plots would make it "-dirty"
}

// add appends a row. If the row misses its target and why is not "", add also appends the text why
// as a footnote, which explains the miss with a measurement.
func (s *suite) add(r report.Row, why string) {
	if why != "" && !r.Met() {
		r.WhyNote = s.note(why)
	}
	s.rows = append(s.rows, r)
}

// note adds a footnote and returns its number.
func (s *suite) note(text string) int {
	for i, known := range s.notes {
		if known == text {
			return i + 1
		}
	}
	s.notes = append(s.notes, text)
	return len(s.notes)
}

// draw writes a plot if plots are enabled.
func (s *suite) draw(file, title string, with func(path, title string) error) error {
	if s.plots == "" {
		return nil
	}
	s.drawn = append(s.drawn, [2]string{title, "img/" + file})
	return with(s.plots+"/"+file, title)
}

// size returns the argument quick in a quick run, and the argument full in any other run.
func (s *suite) size(full, quick int) int {
	if s.quick {
		return quick
	}
	return full
}

type family struct {
	id, title string
	run       func(context.Context, *suite) error
}

func families() []family {
	return []family{
		{"P1", "lock acquire + release", lockThroughput},
		{"P2", "lock hand-over", lockHandOver},
		{"P3", "limiter check, one rule", checkOneRule},
		{"P4", "limiter check, three rules", checkThreeRules},
		{"P5", "check of a denied key", checkDenied},
		{"P6", "exact sliding window", checkSlidingWindow},
		{"P7", "enqueue", enqueue},
		{"P8", "memory for a pending job", jobMemory},
		{"P9", "claim, SQS, acknowledge", dispatchThroughput},
		{"P10", "lateness", lateness},
		{"P11", "growth", growth},
		{"P12", "HTTP on top of the domain", handlerOverhead},
		{"P13", "function binaries", binaries},
	}
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errOut)
	quick := flags.Bool("quick", false, "run fewer and shorter rounds: under two minutes in total")
	only := flags.String("only", "", "IDs of the benchmarks to run, separated by commas: P1,P5")
	check := flags.Float64("check", 0,
		"measure briefly, and fail if a result reaches less than this fraction of its target; 0.4 means 40 %")
	profile := flags.String("cpuprofile", "", "file to write a CPU profile of this process to")
	docs := flags.String("docs", "", "folder to write benchmarks.md and its plots to; if empty, nothing is written")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop, err := profiled(*profile)
	if err != nil {
		return err
	}
	defer stop()
	s := &suite{
		plan: measure.Plan{Rounds: 7, Slice: time.Second}, quick: *quick,
		progress: func(what string) { _, _ = fmt.Fprintln(errOut, what) },
		commit:   output(ctx, "git", "describe", "--always", "--dirty"),
	}
	switch {
	case *check > 0:
		s.quick, s.plan = true, measure.Plan{Rounds: 3, Slice: 150 * time.Millisecond}
	case *quick:
		s.plan = measure.Plan{Rounds: 3, Slice: 300 * time.Millisecond}
	}
	if *docs != "" {
		s.plots = *docs + "/img"
		if err := os.MkdirAll(s.plots, 0o755); err != nil {
			return fmt.Errorf("error making the folder for plots: %w", err)
		}
	}
	started := time.Now()
	for _, f := range families() {
		if *only != "" && !contains(*only, f.id) {
			continue
		}
		s.progress(fmt.Sprintf("%4.0fs  %s %s…", time.Since(started).Seconds(), f.id, f.title))
		if err := f.run(ctx, s); err != nil {
			return fmt.Errorf("%s %s: %w", f.id, f.title, err)
		}
	}
	if err := report.Table(out, s.rows); err != nil {
		return err
	}
	for i, note := range s.notes {
		_, _ = fmt.Fprintf(out, "(%d) %s\n", i+1, note)
	}
	if *docs != "" {
		if err := s.write(ctx, *docs); err != nil {
			return err
		}
	}
	if *check > 0 {
		return report.Check(s.rows, *check)
	}
	return nil
}

// profiled starts to write a CPU profile to the path. The returned function stop ends the profile.
// If the path is empty, both do nothing.
func profiled(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path) //nolint:gosec // the caller chooses the file
	if err != nil {
		return nil, fmt.Errorf("error making the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("error starting the profile: %w", err), file.Close())
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, nil
}

func contains(list, id string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(part), id) {
			return true
		}
	}
	return false
}
