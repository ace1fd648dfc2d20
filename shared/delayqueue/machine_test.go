package delayqueue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
)

// TestStateMachine compares Queues with a model of the state machine in docs/jobs.md. The model has
// one struct for each job and no queues. After every step, each job must be in exactly one place,
// and Get must return the same values as the model.
func TestStateMachine(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*redistest.Redis{"redis": redistest.Single(t), "miniredis": redistest.Mini(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := 0
			q := newClocked(t, r, Config{Shards: 2, DedupWindow: modelWindow * time.Millisecond,
				DeadRetention: modelRetain * time.Millisecond, MaxLapses: modelLapses})
			rapid.Check(t, func(rt *rapid.T) {
				run++
				m := &machine{
					t: t, q: q, queue: fmt.Sprintf("model-%d", run),
					model: &model{now: start, jobs: make(map[string]*modelJob)}, claims: make(map[string][]Claimed),
				}
				q.set(t, start)
				rt.Repeat(m.actions())
			})
		})
	}
}

// machine applies each step to both the queue and the model.
type machine struct {
	*model

	t      *testing.T
	q      *clocked
	queue  string
	claims map[string][]Claimed // all claims of each job ID, including lost claims
}

var ids = []string{"a", "b", "c", "d"}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.check, "enqueue": m.enqueues, "time passes": m.passes, "claim": m.claimed, "accept": m.accepts,
		"requeue": m.requeues,
		"ack":     m.acks, "nack": m.nacks, "maintain": m.maintains, "cancel": m.cancels, "reschedule": m.reschedules,
		"pause": m.pauses, "redrive": m.redrives,
	}
}

func (m *machine) enqueues(rt *rapid.T) {
	id := rapid.SampledFrom(ids).Draw(rt, "id")
	delay := rapid.SampledFrom([]int64{0, 1, 1000, 40_000}).Draw(rt, "delay")
	attempts := rapid.IntRange(1, 3).Draw(rt, "max attempts")
	payload := rapid.SampledFrom([]string{`{"v":1}`, `{"v":2}`}).Draw(rt, "payload")
	j := Job{
		ID: id, Payload: []byte(payload), Delay: time.Duration(delay) * time.Millisecond, MaxAttempts: attempts,
		AckTimeout: 5 * time.Second,
		Backoff:    Backoff{Initial: time.Second, Max: 8 * time.Second, Multiplier: 2},
	}
	expires := int64(0)
	if rapid.Bool().Draw(rt, "expires") {
		expires = m.now + 10_000
		j.ExpiresAt = fromUnixMS(expires)
	}
	got := put(m.t, m.q.Queues, m.queue, j)
	duplicate, differs := m.enqueue(id, delay, expires, attempts, 5000, 1000, payload)
	require.Equal(rt, duplicate, got.Duplicate)
	require.Equal(rt, differs, got.Differs)
	require.Equal(rt, m.jobs[id].state, got.State)
	require.Equal(rt, m.jobs[id].runAt, got.RunAt.UnixMilli())
}

func (m *machine) passes(rt *rapid.T) {
	m.now += rapid.SampledFrom([]int64{1, 999, 1000, 5000, 30_000, 61_000, 121_000}).Draw(rt, "ms")
	m.q.set(m.t, m.now)
}

func (m *machine) claimed(rt *rapid.T) {
	want := m.claim()
	got := make(map[string]int)
	for _, c := range claimAll(m.t, m.q.Queues, m.queue) {
		got[c.ID] = int(c.Claim)
		require.Equal(rt, m.jobs[c.ID].attempt, c.Attempt)
		require.LessOrEqual(rt, m.jobs[c.ID].runAt, m.now, "no job is claimed early")
		require.Equal(rt, m.jobs[c.ID].payload, string(c.Payload))
		m.claims[c.ID] = append(m.claims[c.ID], c)
	}
	require.Equal(rt, want, got)
}

// anyClaim returns a random claim of a random job. The claim may already be lost.
func (m *machine) anyClaim(rt *rapid.T) Claimed {
	id := rapid.SampledFrom(ids).Draw(rt, "id")
	if len(m.claims[id]) == 0 {
		rt.Skip("never claimed")
	}
	return rapid.SampledFrom(m.claims[id]).Draw(rt, "claim")
}

func (m *machine) accepts(rt *rapid.T) {
	c := m.anyClaim(rt)
	lost, err := m.q.Accept(rt.Context(), m.queue, c.Shard, []Claimed{c})
	require.NoError(rt, err)
	require.Equal(rt, m.accept(c.ID, int(c.Claim)), len(lost) == 0)
}

func (m *machine) requeues(rt *rapid.T) {
	c := m.anyClaim(rt)
	delay, poison := rapid.SampledFrom([]int64{0, 250}).Draw(rt, "delay"), rapid.Bool().Draw(rt, "poison")
	lost, err := m.q.Requeue(rt.Context(), m.queue, c.Shard,
		[]Refused{{Job: c, Error: "refused", Delay: time.Duration(delay) * time.Millisecond, Poison: poison}})
	require.NoError(rt, err)
	require.Equal(rt, m.requeue(c.ID, int(c.Claim), delay, poison, "refused"), len(lost) == 0)
}

// outcome checks the error of a call. The error must be JobNotFound if the job does not exist,
// JobConflict if the argument fits is false, and nil otherwise.
func outcome(rt *rapid.T, j *modelJob, fits bool, err error) {
	switch {
	case j == nil:
		require.Equal(rt, fault.JobNotFound, fault.CodeOf(err))
	case !fits:
		var f *fault.Error
		require.True(rt, errors.As(err, &f) && f.Code == fault.JobConflict, "%v", err)
		require.Equal(rt, j.state, f.Extra["state"])
	default:
		require.NoError(rt, err)
	}
}

func (m *machine) acks(rt *rapid.T) {
	id, attempt := rapid.SampledFrom(ids).Draw(rt, "id"), rapid.IntRange(1, 3).Draw(rt, "attempt")
	_, err := m.q.Ack(rt.Context(), m.queue, id, attempt)
	j := m.jobs[id]
	again := j != nil && j.state == Succeeded && j.attempt == attempt // repeating an Ack succeeds
	fits := j != nil && j.state == AwaitingAck && j.attempt == attempt
	outcome(rt, j, fits || again, err)
	if fits {
		j.state, j.until = Succeeded, m.now+modelWindow
	}
}

func (m *machine) nacks(rt *rapid.T) {
	id, attempt := rapid.SampledFrom(ids).Draw(rt, "id"), rapid.IntRange(1, 3).Draw(rt, "attempt")
	var delay *time.Duration
	if rapid.Bool().Draw(rt, "delayed") {
		d := 3 * time.Second
		delay = &d
	}
	_, err := m.q.Nack(rt.Context(), m.queue, id, attempt,
		NackOptions{Reason: "it failed", Delay: delay})
	j := m.jobs[id]
	fits := j != nil && j.state == AwaitingAck && j.attempt == attempt
	// Repeating a Nack succeeds.
	again := j != nil && (j.state == Scheduled || j.state == Dead) && j.attempt == attempt && j.lastError == "it failed"
	outcome(rt, j, fits || again, err)
	if fits {
		wait := j.wait()
		if delay != nil {
			wait = delay.Milliseconds()
		}
		m.failed(j, "it failed", wait)
	}
}

func (m *machine) maintains(rt *rapid.T) {
	for shard := range 2 {
		_, err := m.q.Maintain(rt.Context(), m.queue, shard, 100)
		require.NoError(rt, err)
	}
	m.maintain()
}

func (m *machine) cancels(rt *rapid.T) {
	id := rapid.SampledFrom(ids).Draw(rt, "id")
	_, err := m.q.Cancel(rt.Context(), m.queue, id)
	j := m.jobs[id]
	fits := j != nil && j.state == Scheduled
	outcome(rt, j, fits || j != nil && j.state == Canceled, err)
	if fits {
		j.state, j.until = Canceled, m.now+modelWindow
	}
}

func (m *machine) reschedules(rt *rapid.T) {
	id := rapid.SampledFrom(ids).Draw(rt, "id")
	delay := time.Duration(rapid.SampledFrom([]int64{0, 500, 20_000}).Draw(rt, "delay")) * time.Millisecond
	c := Change{Delay: &delay}
	if rapid.Bool().Draw(rt, "new payload") {
		c.Payload = []byte(`{"v":3}`)
	}
	_, err := m.q.Reschedule(rt.Context(), m.queue, id, c)
	j := m.jobs[id]
	fits := j != nil && j.state == Scheduled
	outcome(rt, j, fits, err)
	if fits {
		j.runAt = m.now + delay.Milliseconds()
		j.until = j.runAt
		if c.Payload != nil {
			j.payload = string(c.Payload)
		}
	}
}

func (m *machine) pauses(rt *rapid.T) {
	switch rapid.IntRange(0, 2).Draw(rt, "kind") {
	case 0:
		require.NoError(rt, m.q.Pause(rt.Context(), m.queue, time.Time{}))
		m.paused = -1
	case 1:
		require.NoError(rt, m.q.Pause(rt.Context(), m.queue, fromUnixMS(m.now+5000)))
		m.paused = m.now + 5000
	default:
		require.NoError(rt, m.q.Resume(rt.Context(), m.queue))
		m.paused = 0
	}
}

func (m *machine) redrives(rt *rapid.T) {
	chosen := rapid.SliceOfDistinct(rapid.SampledFrom(ids), func(id string) string { return id }).Draw(rt, "ids")
	if len(chosen) == 0 {
		chosen = nil
	}
	want := int64(0)
	for id, j := range m.jobs {
		if j.state != Dead {
			continue
		}
		named := len(chosen) == 0
		for _, c := range chosen {
			named = named || c == id
		}
		if named {
			want++
			j.state, j.attempt, j.lapse, j.expires, j.runAt, j.until = Scheduled, 0, 0, 0, m.now, m.now
		}
	}
	got, err := m.q.Redrive(rt.Context(), m.queue, RedriveOptions{IDs: chosen})
	require.NoError(rt, err)
	require.Equal(rt, want, got)
}

// check compares every job with the model after a step.
func (m *machine) check(rt *rapid.T) {
	for _, id := range ids {
		places, record := where(m.t, m.q.client, m.queue, 2, id)
		j := m.jobs[id]
		if j == nil {
			require.Empty(rt, places, id)
			require.Empty(rt, record, id)
			continue
		}
		require.Equal(rt, []string{placeFor(j.state)}, places, "%s is in exactly one place", id)
		info, err := m.q.Get(rt.Context(), m.queue, id)
		require.NoError(rt, err)
		require.Equal(rt, j.state, info.State, id)
		require.Equal(rt, j.attempt, info.Attempt, id)
		require.Equal(rt, j.runAt, info.RunAt.UnixMilli(), id)
		require.Equal(rt, j.lastError, info.LastError, id)
		require.Equal(rt, j.payload, string(info.Payload), id)
	}
}
