package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// promptly is the maximum duration of a call while Redis is unavailable.
const promptly = 500 * time.Millisecond

func showOutage(ctx context.Context, s *scenario) error {
	before, err := s.want(ctx, http.StatusAccepted, http.MethodPost, orders,
		object{"id": s.id("before-the-outage"), "payload": object{"enqueued": "before"}, "delay_ms": 6_000})
	if err != nil {
		return err
	}
	if err := s.StopRedis(ctx); err != nil {
		return fmt.Errorf("error stopping redis: %w", err)
	}
	s.note("Redis is killed while it holds one job")
	running := false
	defer func() {
		if !running { // restart Redis even if a check failed
			_ = s.StartRedis(context.WithoutCancel(ctx))
		}
	}()
	during, err := s.duringOutage(ctx)
	if err != nil {
		return err
	}
	if err := s.StartRedis(ctx); err != nil {
		return fmt.Errorf("error starting redis: %w", err)
	}
	running = true
	s.note("Redis runs again, with its data")
	return s.nothingLost(ctx, before.text("id"), during)
}

// duringOutage shows how locks, limits and jobs degrade. It returns the IDs of the jobs that it
// enqueued: one due immediately and one due later.
func (s *scenario) duringOutage(ctx context.Context) ([]string, error) {
	lock, err := s.want(ctx, http.StatusServiceUnavailable, http.MethodPost, reportLock+"/acquire",
		object{"owner": "worker-cyd"})
	if err != nil {
		return nil, err
	}
	if err := s.check(lock.text("code") == "store_unavailable" && lock.took < promptly,
		"a lock fails fast: 503 %s after %s, Retry-After: %s", lock.text("code"), millis(lock.took),
		lock.header.Get("Retry-After")); err != nil {
		return nil, err
	}
	limited, err := s.call(ctx, http.MethodPost, "/v1/limits/login/check", object{"key": s.id("198.51.100.9")})
	if err != nil {
		return nil, err
	}
	if err := s.check(limited.status == http.StatusOK && limited.is("degraded") &&
		limited.header.Get("Sluice-Degraded") != "" && limited.took < promptly,
		"the limiter counts in memory: 200, Sluice-Degraded: %s, after %s", limited.header.Get("Sluice-Degraded"),
		millis(limited.took)); err != nil {
		return nil, err
	}
	var ids []string
	for name, delay := range map[string]int{"during-now": 0, "during-later": 4_000} {
		job, err := s.want(ctx, http.StatusAccepted, http.MethodPost, orders,
			object{"id": s.id(name), "payload": object{"enqueued": name}, "delay_ms": delay})
		if err != nil {
			return nil, err
		}
		if err := s.check(job.header.Get("Sluice-Degraded") == "enqueue-outbox",
			"the job %s is still accepted: 202, Sluice-Degraded: %s, after %s", name, job.header.Get("Sluice-Degraded"),
			millis(job.took)); err != nil {
			return nil, err
		}
		ids = append(ids, job.text("id"))
	}
	now, err := s.inbox.await(ctx, s.id("during-now"), 10*time.Second)
	if err != nil {
		return nil, err
	}
	return ids, s.check(true, "a job that was due reached SQS without Redis: %s", now.body)
}

func (s *scenario) nothingLost(ctx context.Context, before string, during []string) error {
	lock, err := s.eventually(ctx, http.MethodPost, reportLock+"/acquire", object{"owner": "worker-dan"})
	if err != nil {
		return err
	}
	if err := s.check(lock.number("fence") > 0, "locks work again, fence %.0f", lock.number("fence")); err != nil {
		return err
	}
	all := append([]string{before}, during...)
	for _, id := range all {
		if _, err := s.inbox.await(ctx, id, 15*time.Second); err != nil {
			return err
		}
	}
	if err := pause(ctx, 1500*time.Millisecond); err != nil { // time for a duplicate to arrive
		return err
	}
	once := true
	for _, id := range all {
		once = once && s.inbox.times(id) == 1
	}
	if err := s.check(once, "all three jobs arrived once: none was lost, none was duplicated"); err != nil {
		return err
	}
	limited, err := s.eventually(ctx, http.MethodPost, "/v1/limits/login/check", object{"key": s.id("198.51.100.10")})
	if err != nil {
		return err
	}
	return s.check(!limited.is("degraded"), "the limiter counts in Redis again, without a restart")
}

// eventually repeats a call until the answer is 200 and not degraded, for up to ten seconds.
func (s *scenario) eventually(ctx context.Context, method, path string, body any) (answer, error) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		a, err := s.call(ctx, method, path, body)
		if err != nil || (a.status == http.StatusOK && a.header.Get("Sluice-Degraded") == "") {
			return a, err
		}
		if time.Now().After(deadline) {
			return a, fmt.Errorf("%s %s still answers %d after ten seconds: %v", method, path, a.status, a.body)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return a, err
		}
	}
}
