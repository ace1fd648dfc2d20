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

// The whole state machine of docs/jobs.md against a plain model of it: one struct for each job, and
// no queue. After every step each job is in exactly one place, and reads as the model says.

// modelJob is a job by the documentation. until is when its place ends: its due time, its lease,
// its ack deadline or its retention.
type modelJob struct {
	state                       State
	attempt, max, claims, lapse int
	runAt, until                int64
	expires                     int64
	ack, backoff                int64
	payload, lastError          string
}

const (
	modelLease  = 30_000
	modelWindow = 60_000
	modelRetain = 120_000
	modelLapses = 3
)

type model struct {
	now    int64
	jobs   map[string]*modelJob
	paused int64 // 0 not, -1 for good, else until
}

func (m *model) enqueue(id string, delay, expires int64, attempts int, ack, backoff int64,
	payload string) (duplicate, differs bool) {
	if j := m.jobs[id]; j != nil {
		if !m.finished(j) || j.until > m.now {
			return true, j.payload != payload || false
		}
	}
	m.jobs[id] = &modelJob{
		state: Scheduled, max: attempts, runAt: m.now + delay, until: m.now + delay, expires: expires, ack: ack,
		backoff: backoff, payload: payload,
	}
	return false, false
}

// finished jobs stay for the dedup window only.
func (m *model) finished(j *modelJob) bool {
	return j.state == Dispatched || j.state == Succeeded || j.state == Canceled || j.state == Expired
}

func (m *model) claim() map[string]int {
	out := make(map[string]int)
	if m.paused == -1 || m.paused > m.now {
		return out
	}
	m.paused = 0
	for id, j := range m.jobs {
		if j.state != Scheduled || j.until > m.now {
			continue
		}
		switch {
		case j.expires != 0 && j.expires <= m.now:
			j.state, j.until = Expired, m.now+modelWindow
		case j.lapse >= modelLapses:
			j.state, j.until = Dead, m.now+modelRetain
			j.lastError = fmt.Sprintf("claimed %d times in a row, but each lease ended before an outcome was recorded",
				modelLapses)
		default:
			j.attempt, j.claims = j.attempt+1, j.claims+1
			j.state, j.until = Dispatching, m.now+modelLease
			out[id] = j.claims
		}
	}
	return out
}

// holds tells whether a claim is the one that counts.
func (m *model) holds(id string, claim int) bool {
	j := m.jobs[id]
	return j != nil && j.state == Dispatching && j.claims == claim
}

func (m *model) accept(id string, claim int) bool {
	if !m.holds(id, claim) {
		return false
	}
	j := m.jobs[id]
	j.lapse = 0
	if j.state, j.until = Dispatched, m.now+modelWindow; j.max > 1 {
		j.state, j.until = AwaitingAck, m.now+j.ack
	}
	return true
}

func (m *model) giveBack(id string, claim int, delay int64, poison bool, why string) bool {
	if !m.holds(id, claim) {
		return false
	}
	j := m.jobs[id]
	j.lapse, j.lastError = 0, why
	if poison {
		j.state, j.until = Dead, m.now+modelRetain
		return true
	}
	j.state, j.until, j.attempt = Scheduled, m.now+delay, j.attempt-1
	return true
}

// failed is the end of an attempt without success.
func (m *model) failed(j *modelJob, why string, delay int64) {
	j.lastError = why
	if j.attempt >= j.max {
		j.state, j.until = Dead, m.now+modelRetain
		return
	}
	j.state, j.until = Scheduled, m.now+delay
	j.runAt = j.until
}

// wait is the backoff after an attempt: doubled each time, without jitter here.
func (j *modelJob) wait() int64 { return min(j.backoff<<(j.attempt-1), 8*j.backoff) }

func (m *model) maintain() {
	for id, j := range m.jobs {
		if j.until > m.now {
			continue
		}
		switch j.state {
		case Dispatching:
			j.state, j.until, j.attempt, j.lapse = Scheduled, m.now, j.attempt-1, j.lapse+1
		case AwaitingAck:
			at := j.attempt >= j.max
			m.failed(j, "no ack within the timeout", j.wait())
			if at {
				j.runAt = m.now
			}
		case Dispatched, Succeeded, Canceled, Expired, Dead:
			delete(m.jobs, id)
		case Scheduled:
		}
	}
}

// places says where a job of a state must be.
func placeFor(s State) string {
	switch s {
	case Scheduled:
		return "due"
	case Dispatching:
		return "leased"
	case AwaitingAck:
		return "awaiting"
	case Dead:
		return "dead"
	default:
		return "done"
	}
}

func TestTheQueueDoesWhatItsStateMachineSays(t *testing.T) {
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

// machine drives the queue and its model together.
type machine struct {
	*model

	t      *testing.T
	q      *clocked
	queue  string
	claims map[string][]Claimed // every claim that was ever made, also those that hold no more
}

var ids = []string{"a", "b", "c", "d"}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.check, "enqueue": m.enqueues, "time passes": m.passes, "claim": m.claimed, "accept": m.accepts,
		"give back": m.givesBack,
		"ack":       m.acks, "nack": m.nacks, "maintain": m.maintains, "cancel": m.cancels, "reschedule": m.reschedules,
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
		require.LessOrEqual(rt, m.jobs[c.ID].runAt, m.now, "never early")
		require.Equal(rt, m.jobs[c.ID].payload, string(c.Payload))
		m.claims[c.ID] = append(m.claims[c.ID], c)
	}
	require.Equal(rt, want, got)
}

// anyClaim is one that was made at some time: it may long have lost its job.
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

func (m *machine) givesBack(rt *rapid.T) {
	c := m.anyClaim(rt)
	delay, poison := rapid.SampledFrom([]int64{0, 250}).Draw(rt, "delay"), rapid.Bool().Draw(rt, "poison")
	lost, err := m.q.Requeue(rt.Context(), m.queue, c.Shard,
		[]Refused{{Job: c, Error: "refused", Delay: time.Duration(delay) * time.Millisecond, Poison: poison}})
	require.NoError(rt, err)
	require.Equal(rt, m.giveBack(c.ID, int(c.Claim), delay, poison, "refused"), len(lost) == 0)
}

// outcome compares an error with what the model expects of a job that the call does not fit.
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
	again := j != nil && j.state == Succeeded && j.attempt == attempt // the answer to an ack was lost
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
	// the answer was lost
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

// check holds after every step.
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
