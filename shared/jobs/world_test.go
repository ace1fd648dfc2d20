package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
)

// maxMoveFailures is the number of failures to move the outbox after which a dispatcher claims
// anyway.
const maxMoveFailures = 3

// far is a delay that no test waits for.
const far = time.Hour

// awaitDue waits until jobs without a delay are due: their due time is rounded up to a millisecond.
func awaitDue() { <-time.After(2 * time.Millisecond) }

// testingT has the methods that *testing.T and *rapid.T share.
type testingT interface {
	require.TestingT
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// world is two API processes and two dispatchers on the same stores. It records the answers that
// callers got about each job, and checks every message to SQS against these rules:
//
//   - A canceled job is not sent, and a sent job is not canceled.
//   - A job that does not exist (404) is not sent.
//   - A rescheduled job is not sent before its new time, nor with an old payload.
//   - A job of a paused queue is not sent.
//   - No job is sent twice, unless a store failed while its outcome was recorded.
//   - A job that was accepted is sent, canceled, or can be read.
type world struct {
	t       testingT
	cluster *cluster

	api, otherAPI               *process
	dispatcher, otherDispatcher *process

	jobs     map[string]*answers
	paused   bool    // an acknowledged pause is in effect
	pauses   int     // number of acknowledged pauses
	resumes  int     // number of resume calls that began plus number that ended
	resuming int     // number of resume calls in flight
	turns    []*turn // turns in progress
}

// answers records the answers that callers got about a job.
type answers struct {
	accepted, durable, canceled, missing bool

	later    bool     // rescheduled to a time after the end of the test
	payloads []string // payloads that may be sent
	sent     int

	mayRepeat     bool // a failure may cause a second message
	mayBeCanceled bool // a cancellation failed or was concurrent
	mayBeGone     bool // Redis lost its data

	enqueuing, enqueuers int // enqueue calls in flight, and all enqueue calls
}

func newWorld(tb testing.TB, t testingT, c *cluster) *world {
	tb.Helper()
	table := c.table(tb)
	return &world{
		t: t, cluster: c, jobs: make(map[string]*answers), api: c.start(t, table), otherAPI: c.start(t, table),
		dispatcher: c.start(t, table), otherDispatcher: c.start(t, table),
	}
}

// again returns a world with the same processes and no jobs.
func (w *world) again(t testingT) *world {
	next := *w
	next.t, next.jobs, next.turns = t, make(map[string]*answers), nil
	return &next
}

func (w *world) processes() []*process {
	return []*process{w.api, w.otherAPI, w.dispatcher, w.otherDispatcher}
}

func (w *world) job(id string) *answers {
	if w.jobs[id] == nil {
		w.jobs[id] = &answers{}
	}
	return w.jobs[id]
}

// flush makes Redis lose its data.
func (w *world) flush() {
	require.NoError(w.t, w.cluster.redis.Client.FlushAll(context.Background()).Err())
	for _, j := range w.jobs {
		j.mayRepeat = j.mayRepeat || j.sent > 0
		j.mayBeGone = j.mayBeGone || !j.durable || j.sent > 0 || j.mayBeCanceled
	}
}

// enqueue enqueues a job. It does nothing if an earlier enqueue with the same ID succeeded: the ID
// may be free again, and the answers of two different jobs would be mixed.
func (w *world) enqueue(p *process, job delayqueue.Job) {
	j := w.job(job.ID)
	if j.accepted {
		return
	}
	j.missing, j.canceled, j.later = false, false, false
	j.payloads = append(j.payloads, string(job.Payload))

	j.enqueuing++
	j.enqueuers++
	r := p.Enqueue(context.Background(), queue, []delayqueue.Job{job})[0]
	j.enqueuing--

	if r.Err != nil {
		require.Equal(w.t, fault.StoreUnavailable, fault.CodeOf(r.Err), "%v", r.Err)
		return
	}
	j.accepted, j.durable = true, j.durable || job.Durable && !r.Enqueued.Duplicate
}

// alone runs a call and returns true if no enqueue of the same job overlapped the call. Only if it
// returns true must later events agree with the answer of the call.
func (j *answers) alone(call func()) bool {
	before := j.enqueuers
	call()
	return j.enqueuing == 0 && j.enqueuers == before
}

// notFound checks a 404 answer.
func (w *world) notFound(id string) {
	j := w.job(id)
	require.True(w.t, !j.accepted || j.mayBeGone, "job %s was accepted and is not found: %+v", id, *j)
	j.missing = true
}

func (w *world) cancel(p *process, id string) {
	j := w.job(id)
	sent := j.sent
	j.mayBeCanceled = true
	var info delayqueue.Info
	var err error
	if !j.alone(func() { info, err = p.Cancel(context.Background(), queue, id) }) {
		return
	}
	switch fault.CodeOf(err) {
	case "":
		require.NoError(w.t, err)
		require.Equal(w.t, delayqueue.Canceled, info.State)
		require.True(w.t, sent == 0 || j.mayRepeat, "job %s was sent and is canceled: %+v", id, *j)
		j.canceled = true
	case fault.JobNotFound:
		w.notFound(id)
	case fault.JobConflict, fault.StoreUnavailable:
	default:
		w.t.Fatalf("cancel: %v", err)
	}
}

func (w *world) get(p *process, id string) {
	j := w.job(id)
	canceled := j.canceled
	var info delayqueue.Info
	var err error
	if !j.alone(func() { info, err = p.Get(context.Background(), queue, id) }) {
		return
	}
	switch fault.CodeOf(err) {
	case "":
		require.NoError(w.t, err)
		require.True(w.t, !canceled || j.mayBeGone || info.State == delayqueue.Canceled, "%s: %s", id, info.State)
	case fault.JobNotFound:
		w.notFound(id)
	case fault.StoreUnavailable:
	default:
		w.t.Fatalf("get: %v", err)
	}
}

func (w *world) reschedule(p *process, id string, delay time.Duration, payload string) {
	j := w.job(id)
	payloads, later := slices.Clone(j.payloads), j.later
	j.payloads, j.later = append(j.payloads, payload), false // until the answer, either payload may be sent
	var err error
	if !j.alone(func() {
		_, err = p.Reschedule(context.Background(), queue, id,
			delayqueue.Change{Delay: &delay, Payload: json.RawMessage(payload)})
	}) {
		return
	}
	switch fault.CodeOf(err) {
	case "":
		require.NoError(w.t, err)
		j.payloads, j.later = []string{payload}, delay == far
	case fault.JobNotFound:
		w.notFound(id)
	case fault.JobConflict:
		j.payloads, j.later = payloads, later
	case fault.StoreUnavailable:
	default:
		w.t.Fatalf("reschedule: %v", err)
	}
}

func (w *world) pause(p *process) {
	resumes := w.resumes
	overlaps := w.resuming > 0 // then either call may take effect last
	if p.Pause(context.Background(), queue, time.Time{}) == nil && w.resumes == resumes && !overlaps {
		w.paused = true
		w.pauses++
	}
}

func (w *world) resume(p *process) {
	w.paused = false
	w.resumes++
	w.resuming++
	_ = p.Resume(context.Background(), queue)
	w.resuming--
	w.resumes++
}

// finish ends all outages, runs a dispatcher, and checks every job once more.
func (w *world) finish() {
	for _, p := range w.processes() {
		p.redisDown, p.dynamoDown = false, false
	}
	if w.pauses > 0 {
		require.NoError(w.t, w.api.Resume(context.Background(), queue))
		w.paused = false
	}
	w.dispatch(w.dispatcher)
	for id, j := range w.jobs {
		if j.sent > 0 {
			w.cancel(w.api, id)
		}
	}
	w.requireNoneLost()
	w.flush()
	w.requireNoneLost()
}

// requireNoneLost requires that every accepted job that was not sent can be read.
func (w *world) requireNoneLost() {
	for id, j := range w.jobs {
		if !j.accepted || j.mayBeGone || j.sent > 0 {
			continue
		}
		info, err := w.api.Get(context.Background(), queue, id)
		require.NoError(w.t, err, "job %s is lost: %+v", id, *j)
		require.True(w.t, !j.canceled || info.State == delayqueue.Canceled, "job %s is %s", id, info.State)
	}
}
