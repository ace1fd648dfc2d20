// Package measure compares several ways to do the same work. They take turns within one run on one
// machine, over several rounds.
//
// A ratio compares two results of the same round, so both contenders ran under the same conditions.
// The report shows the median of the ratios and their spread. Absolute times depend on the machine
// more than on the code.
package measure

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Plan sets the number and the length of the rounds.
type Plan struct {
	Rounds int
	Slice  time.Duration // measured time of each contender in each round
}

// Contender is one way to do the work.
type Contender struct {
	Name string
	// Op does the work once. worker is the goroutine's number, and n the number of the goroutine's
	// earlier calls in this round.
	Op func(ctx context.Context, worker, n int) error
	// Units is the amount of work in one Op. Default 1.
	Units int
	// Before prepares each round; its time is not measured. Default: nothing.
	Before func(ctx context.Context) error
}

// Samples holds one measurement per round for each contender.
type Samples map[string][]float64

// Throughput lets each contender work in each round, with the given number of goroutines. The
// samples are units of work per second.
func Throughput(ctx context.Context, plan Plan, workers int, contenders []Contender) (Samples, error) {
	out := make(Samples)
	for round := -1; round < plan.Rounds; round++ { // round -1 warms up and is not recorded
		for i := range contenders {
			c := contenders[(i+max(round, 0))%len(contenders)]
			slice := plan.Slice
			if round < 0 {
				slice /= 4
			}
			rate, err := c.rate(ctx, slice, workers)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			if round >= 0 {
				out[c.Name] = append(out[c.Name], rate)
			}
		}
	}
	return out, nil
}

func (c Contender) rate(ctx context.Context, slice time.Duration, workers int) (float64, error) {
	if c.Before != nil {
		if err := c.Before(ctx); err != nil {
			return 0, err
		}
	}
	var wait sync.WaitGroup
	counts, errs := make([]int, workers), make([]error, workers)
	started := time.Now()
	for w := range workers {
		wait.Go(func() {
			for n := 0; time.Since(started) < slice; n++ {
				if errs[w] = c.Op(ctx, w, n); errs[w] != nil {
					return
				}
				counts[w]++
			}
		})
	}
	wait.Wait()
	took := time.Since(started)
	total := 0
	for w := range workers {
		if errs[w] != nil {
			return 0, errs[w]
		}
		total += counts[w]
	}
	return float64(total*max(c.Units, 1)) / took.Seconds(), nil
}

// Ratio divides, in each round, the sample of the contender named ours by the sample of the
// contender named theirs. It returns the median, the lowest and the highest quotient.
func (s Samples) Ratio(ours, theirs string) (median, low, high float64) {
	ratios := make([]float64, len(s[ours]))
	for i := range ratios {
		ratios[i] = s[ours][i] / s[theirs][i]
	}
	return Quantile(ratios, 0.5), slices.Min(ratios), slices.Max(ratios)
}

// Median returns the median of a contender's samples.
func (s Samples) Median(name string) float64 { return Quantile(s[name], 0.5) }

// Quantile returns the q-quantile of values (q from 0 to 1) by the nearest rank.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
