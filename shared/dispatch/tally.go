package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// maxSamples is the maximum number of values in one line of CloudWatch's embedded metric format.
const maxSamples = 100

// tally counts the jobs of a run by queue and outcome, until flush emits the counts as metrics.
type tally struct {
	metrics       *telemetry.Metrics
	sent, refused atomic.Int64

	mu     sync.Mutex
	queues map[string]*counts
}

type counts struct {
	late                                             []float64
	sent, refused, poison, reclaimed, missed, pruned int64
}

func newTally(metrics *telemetry.Metrics) *tally {
	return &tally{metrics: metrics, queues: make(map[string]*counts)}
}

// of returns the counts of a queue. The caller must hold mu.
func (t *tally) of(queue string) *counts {
	if t.queues[queue] == nil {
		t.queues[queue] = &counts{}
	}
	return t.queues[queue]
}

func (t *tally) lateness(queue string, late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(queue)
	c.late = append(c.late, float64(max(0, late).Milliseconds()))
	if len(c.late) == maxSamples {
		t.emitLateness(queue, c)
	}
}

func (t *tally) emitLateness(queue string, c *counts) {
	t.metrics.Emit(map[string]string{"queue": queue},
		telemetry.Metric{Name: "lateness", Unit: telemetry.Milliseconds, Values: c.late})
	c.late = nil
}

func (t *tally) delivered(queue string, accepted int, refused []delayqueue.Refused) {
	t.sent.Add(int64(accepted))
	t.refused.Add(int64(len(refused)))
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(queue)
	c.sent += int64(accepted)
	for _, r := range refused {
		if r.Poison {
			c.poison++
		} else {
			c.refused++
		}
	}
}

func (t *tally) maintained(queue string, m delayqueue.Maintained) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(queue)
	c.reclaimed += m.Reclaimed
	c.missed += m.Missed
	c.poison += m.Died
	c.pruned += m.Pruned
}

// flush emits the counts since the last flush. It emits nothing for a queue without activity.
func (t *tally) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for queue, c := range t.queues {
		if len(c.late) > 0 {
			t.emitLateness(queue, c)
		}
		var out []telemetry.Metric
		for name, n := range map[string]int64{
			"dispatched": c.sent, "returned": c.refused, "died": c.poison, "reclaimed": c.reclaimed,
			"ack_timeouts": c.missed, "pruned": c.pruned,
		} {
			if n > 0 {
				out = append(out, telemetry.One(name, telemetry.Count, float64(n)))
			}
		}
		t.metrics.Emit(map[string]string{"queue": queue}, out...)
		*c = counts{}
	}
}
