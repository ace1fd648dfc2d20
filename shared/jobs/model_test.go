package jobs

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// TestModel runs random operations of several processes while stores fail, lose answers and lose
// data.
func TestModel(t *testing.T) {
	c := startCluster(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{T: rt, world: newWorld(t, rt, c)}
		m.flush()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			m.step()
		}
		m.finish()
	})
}

// model draws random operations and runs them in a world.
type model struct {
	*rapid.T
	*world
}

func (m *model) step() {
	switch rapid.SampledFrom([]string{"api", "api", "api", "dispatch", "dispatch", "outage", "reload", "flush"}).
		Draw(m.T, "step") {
	case "api":
		call := m.call()
		m.api.run(m.script(), func() { call(m.api) })
	case "dispatch":
		m.dispatcher.run(m.script(), func() { m.dispatch(m.dispatcher) })
	case "outage":
		m.outage()
	case "reload":
		_ = m.dispatcher.ReloadPause(m.Context(), queue)
	case "flush":
		m.flush()
	}
}

// script draws the events during an operation: failing calls, and operations of other processes.
func (m *model) script() map[int]event {
	script := make(map[int]event)
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(m.T, "events") {
		call := rapid.IntRange(0, 24).Draw(m.T, "at")
		switch rapid.SampledFrom([]string{"refused", "lost", "call", "dispatch", "dispatch"}).Draw(m.T, "event") {
		case "refused":
			script[call] = event{failure: refused}
		case "lost":
			script[call] = event{failure: lost}
		case "call":
			other := m.call()
			script[call] = event{do: func() { other(m.otherAPI) }}
		case "dispatch":
			script[call] = event{do: func() { m.dispatch(m.otherDispatcher) }}
		}
	}
	return script
}

// call draws an API call.
func (m *model) call() func(*process) {
	id := rapid.SampledFrom([]string{"a", "b"}).Draw(m.T, "job")
	delay := rapid.SampledFrom([]time.Duration{0, far}).Draw(m.T, "delay")
	payload := fmt.Sprint(rapid.IntRange(0, 9).Draw(m.T, "payload"))
	kinds := []string{"enqueue", "enqueue", "cancel", "cancel", "reschedule", "get", "pause", "resume"}
	switch rapid.SampledFrom(kinds).Draw(m.T, "call") {
	case "enqueue":
		job := delayqueue.Job{
			ID: id, Payload: json.RawMessage(payload), Delay: delay, Durable: rapid.Bool().Draw(m.T, "durable"),
		}
		return func(p *process) { m.enqueue(p, job) }
	case "cancel":
		return func(p *process) { m.cancel(p, id) }
	case "reschedule":
		return func(p *process) { m.reschedule(p, id, delay, payload) }
	case "get":
		return func(p *process) { m.get(p, id) }
	case "pause":
		return func(p *process) { m.pause(p) }
	default:
		return func(p *process) { m.resume(p) }
	}
}

func (m *model) outage() {
	down := rapid.Bool().Draw(m.T, "down")
	switch rapid.SampledFrom([]string{"redis", "redis for the api", "redis for dispatchers", "dynamodb"}).
		Draw(m.T, "outage") {
	case "redis":
		for _, p := range m.processes() {
			p.redisDown = down
		}
	case "redis for the api":
		m.api.redisDown, m.otherAPI.redisDown = down, down
	case "redis for dispatchers":
		m.dispatcher.redisDown, m.otherDispatcher.redisDown = down, down
	case "dynamodb":
		for _, p := range m.processes() {
			p.dynamoDown = down
		}
	}
}
