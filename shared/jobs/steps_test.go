package jobs

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
)

// scenario is a world with one job.
type scenario struct {
	*world
	id string
}

func (s *scenario) enqueue(delay time.Duration, durable bool) {
	s.world.enqueue(s.api, delayqueue.Job{ID: s.id, Payload: json.RawMessage(`1`), Delay: delay, Durable: durable})
}

// withoutRedis runs an operation while the given processes cannot reach Redis.
func withoutRedis(operation func(), processes ...*process) {
	for _, p := range processes {
		p.redisDown = true
	}
	operation()
	for _, p := range processes {
		p.redisDown = false
	}
}

// places maps a description of each place that a job can be in to a function that puts the
// scenario's job there.
func places() map[string]func(*scenario) {
	return map[string]func(*scenario){
		"a due job in the outbox": func(s *scenario) { withoutRedis(func() { s.enqueue(0, false) }, s.api) },
		"a job in the outbox that is not due": func(s *scenario) {
			withoutRedis(func() { s.enqueue(far, false) }, s.api)
		},
		"a due job in both stores": func(s *scenario) {
			job, err := delayqueue.Job{ID: s.id, Payload: json.RawMessage(`1`)}.Normalize()
			require.NoError(s.t, err)
			inRedis := s.api.queues.EnqueueAccepted(context.Background(), queue, []delayqueue.Job{job})
			require.NoError(s.t, inRedis[0].Err)
			withoutRedis(func() { s.enqueue(0, false) }, s.api)
		},
		"a due durable job":             func(s *scenario) { s.enqueue(0, true) },
		"a durable job that is not due": func(s *scenario) { s.enqueue(far, true) },
		"a durable job after Redis lost its data": func(s *scenario) {
			s.enqueue(far, true)
			s.flush()
		},
		"a job that the outbox sent": func(s *scenario) {
			s.enqueue(0, true)
			awaitDue()
			withoutRedis(func() { s.dispatch(s.dispatcher) }, s.dispatcher)
			require.Equal(s.t, 1, s.job(s.id).sent)
		},
	}
}

// calls maps names to API calls.
var calls = map[string]func(*scenario, *process){
	"cancel":     func(s *scenario, p *process) { s.cancel(p, s.id) },
	"reschedule": func(s *scenario, p *process) { s.reschedule(p, s.id, far, "2") },
	"get":        func(s *scenario, p *process) { s.get(p, s.id) },
}

// dispatchers maps names to the operations of a dispatcher.
var dispatchers = map[string]func(*scenario, *process){
	"dispatch": func(s *scenario, p *process) { s.dispatch(p) },
	"dispatch without Redis": func(s *scenario, p *process) {
		withoutRedis(func() { s.dispatch(p) }, p)
	},
}

// TestEveryStep runs every operation on a job in every place. Each run injects a failure, or an
// operation of another process, at one store call of the operation; together, the runs cover all
// calls.
func TestEveryStep(t *testing.T) {
	c := startCluster(t)
	shared := newWorld(t, t, c)
	runs := 0
	run := func(t *testing.T, place func(*scenario), p *process, operation func(*scenario, *process),
		interfere func(*scenario) event) {
		for at, done := 0, false; !done; at++ {
			runs++
			s := &scenario{world: shared.again(t), id: redistest.Name("job")}
			place(s)
			awaitDue()
			p.run(map[int]event{at: interfere(s)}, func() { operation(s, p) })
			done = at >= p.calls
			s.finish()
		}
	}
	failures := map[string]event{"a refused call": {failure: refused}, "a lost answer": {failure: lost}}

	for where, place := range places() {
		for name, call := range calls {
			for what, e := range failures {
				if name == "get" {
					continue // get changes nothing
				}
				t.Run(where+": "+name+" with "+what, func(t *testing.T) {
					run(t, place, shared.api, call, func(*scenario) event { return e })
				})
			}
			for other, dispatch := range dispatchers {
				t.Run(where+": "+name+" and "+other, func(t *testing.T) {
					run(t, place, shared.api, call, func(s *scenario) event {
						return event{do: func() { dispatch(s, s.otherDispatcher) }}
					})
				})
			}
		}
		for name, dispatch := range dispatchers {
			for what, e := range failures {
				t.Run(where+": "+name+" with "+what, func(t *testing.T) {
					run(t, place, shared.dispatcher, dispatch, func(*scenario) event { return e })
				})
			}
			for other, call := range calls {
				t.Run(where+": "+name+" and "+other, func(t *testing.T) {
					run(t, place, shared.dispatcher, dispatch, func(s *scenario) event {
						return event{do: func() { call(s, s.otherAPI) }}
					})
				})
			}
		}
	}
	t.Logf("%d runs", runs)
}
