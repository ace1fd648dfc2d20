package demo

import (
	"context"
	"net/http"
	"time"
)

const orders = "/v1/queues/orders/jobs"

func showJobs(ctx context.Context, s *scenario) error {
	job, err := s.want(ctx, http.StatusAccepted, http.MethodPost, orders,
		object{"id": s.id("cancel-order-42"), "payload": object{"cancel": 42}, "delay_ms": 3_000})
	if err != nil {
		return err
	}
	s.note("the job %s is accepted, due at %s (%s)", job.text("id"), job.text("run_at"), millis(job.took))
	again, err := s.want(ctx, http.StatusOK, http.MethodPost, orders,
		object{"id": job.text("id"), "payload": object{"cancel": 42}, "delay_ms": 3_000})
	if err != nil {
		return err
	}
	err = s.check(again.is("duplicate"),
		"a second enqueue with the same ID creates no job and is reported as a duplicate")
	if err != nil {
		return err
	}
	paid, err := s.want(ctx, http.StatusAccepted, http.MethodPost, orders,
		object{"id": s.id("cancel-order-43"), "payload": object{"cancel": 43}, "delay_ms": 3_000})
	if err != nil {
		return err
	}
	canceled, err := s.want(ctx, http.StatusOK, http.MethodDelete, orders+"/"+paid.text("id"), nil)
	if err != nil {
		return err
	}
	if err := s.check(canceled.text("state") == "canceled", "order 43 is paid: its job is canceled"); err != nil {
		return err
	}
	if err := s.onTime(ctx, job.text("id")); err != nil {
		return err
	}
	return s.check(s.inbox.times(paid.text("id")) == 0 && s.inbox.times(job.text("id")) == 1,
		"the job of order 42 arrived once, the job of order 43 did not arrive")
}

// onTime waits for a job in SQS and checks its lateness at the consumer and at SQS.
func (s *scenario) onTime(ctx context.Context, id string) error {
	got, err := s.inbox.await(ctx, id, 10*time.Second)
	if err != nil {
		return err
	}
	if err := s.check(got.lateness() >= 0 && got.lateness() < time.Second,
		"a consumer received the job %s after it was due, and not before: %s", millis(got.lateness()),
		got.body); err != nil {
		return err
	}
	state, err := s.until(ctx, orders+"/"+id, func(a answer) bool { return a.text("state") == "dispatched" })
	if err != nil {
		return err
	}
	due, err := state.instant("run_at")
	if err != nil {
		return err
	}
	sent, err := state.instant("dispatched_at")
	if err != nil {
		return err
	}
	return s.check(!sent.Before(due), "SQS accepted it %s after it was due; its state is %s", millis(sent.Sub(due)),
		state.text("state"))
}

// until repeats a GET request until holds(answer) is true. It gives up after ten seconds.
func (s *scenario) until(ctx context.Context, path string, holds func(answer) bool) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		a, err := s.call(ctx, http.MethodGet, path, nil)
		if err != nil || (a.status == http.StatusOK && holds(a)) {
			return a, err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return a, err
		}
	}
}

// id returns a name that is unique to this run, so that the scenario can run again on the same
// stack.
func (s *scenario) id(name string) string { return name + "-" + s.started.Format("150405.000") }
