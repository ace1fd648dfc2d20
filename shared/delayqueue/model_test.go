package delayqueue

import "fmt"

// modelJob is a job as docs/jobs.md describes it. The field until is the time at which the job's
// state may change: its due time, the end of its lease, its acknowledgement deadline, or the end of
// its dedup window or retention.
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
	paused int64 // 0: not paused; -1: paused until Resume; otherwise the end of the pause
}

func (m *model) enqueue(id string, delay, expires int64, attempts int, ack, backoff int64,
	payload string) (duplicate, differs bool) {
	if j := m.jobs[id]; j != nil {
		if !m.finished(j) || j.until > m.now {
			return true, j.payload != payload
		}
	}
	m.jobs[id] = &modelJob{
		state: Scheduled, max: attempts, runAt: m.now + delay, until: m.now + delay, expires: expires, ack: ack,
		backoff: backoff, payload: payload,
	}
	return false, false
}

// finished reports whether a job is in a final state and is kept only for the dedup window.
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

// holds reports whether the job is still claimed and the given claim is its newest.
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

func (m *model) requeue(id string, claim int, delay int64, poison bool, why string) bool {
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

// failed ends a failed attempt.
func (m *model) failed(j *modelJob, why string, delay int64) {
	j.lastError = why
	if j.attempt >= j.max {
		j.state, j.until = Dead, m.now+modelRetain
		return
	}
	j.state, j.until = Scheduled, m.now+delay
	j.runAt = j.until
}

// wait returns the backoff after the current attempt. It doubles with each attempt, up to 8 times
// the initial backoff, without jitter.
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

// placeFor returns the set that must contain a job in state s.
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
