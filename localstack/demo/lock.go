package demo

import (
	"context"
	"net/http"
	"time"
)

const (
	reportLock = "/v1/locks/nightly-report"
	hold       = 1200 * time.Millisecond
)

type object = map[string]any

func showLock(ctx context.Context, s *scenario) error {
	ann, err := s.want(ctx, http.StatusOK, http.MethodPost, reportLock+"/acquire",
		object{"owner": "worker-ann", "ttl_ms": 10_000})
	if err != nil {
		return err
	}
	if err := s.check(ann.number("fence") > 0, "worker-ann holds the lock, fence %.0f (%s)", ann.number("fence"),
		millis(ann.took)); err != nil {
		return err
	}
	bob, err := s.want(ctx, http.StatusConflict, http.MethodPost, reportLock+"/acquire", object{"owner": "worker-bob"})
	if err != nil {
		return err
	}
	if err := s.check(bob.text("code") == "lock_held" && bob.text("holder") == "worker-ann",
		"worker-bob is refused: %s, by %s for %.0f ms more", bob.text("code"), bob.text("holder"),
		bob.number("retry_after_ms")); err != nil {
		return err
	}
	return s.handOver(ctx, ann)
}

// handOver makes worker-bob wait for the lock while worker-ann works, and measures the time from
// the release to the acquisition.
func (s *scenario) handOver(ctx context.Context, ann answer) error {
	type outcome struct {
		answer
		at  time.Time
		err error
	}
	waiting := make(chan outcome, 1)
	go func() {
		a, err := s.want(ctx, http.StatusOK, http.MethodPost, reportLock+"/acquire",
			object{"owner": "worker-bob", "wait_ms": 8_000})
		waiting <- outcome{a, time.Now(), err}
	}()
	s.note("worker-bob waits for the lock; worker-ann works for %s, then releases it", millis(hold))
	if err := pause(ctx, hold); err != nil {
		return err
	}
	state, err := s.want(ctx, http.StatusOK, http.MethodGet, reportLock, nil)
	if err != nil {
		return err
	}
	waited := state.is("held") && state.number("waiters") == 1
	if err := s.check(waited, "the lock is held and has one waiter"); err != nil {
		return err
	}
	if _, err := s.want(ctx, http.StatusOK, http.MethodPost, reportLock+"/release",
		object{"token": ann.text("token")}); err != nil {
		return err
	}
	released := time.Now()
	bob := <-waiting
	if bob.err != nil {
		return bob.err
	}
	if err := s.check(bob.at.Sub(released) < time.Second, "worker-bob holds the lock %s after the release",
		millis(bob.at.Sub(released))); err != nil {
		return err
	}
	if err := s.check(bob.number("fence") > ann.number("fence"),
		"the fence of worker-bob is higher, %.0f > %.0f: a resource can refuse a late write by worker-ann",
		bob.number("fence"), ann.number("fence")); err != nil {
		return err
	}
	late, err := s.want(ctx, http.StatusConflict, http.MethodPost, reportLock+"/renew",
		object{"token": ann.text("token")})
	if err != nil {
		return err
	}
	if err := s.check(late.text("reason") == "held_by_other", "worker-ann can no longer renew: %s, %s",
		late.text("code"), late.text("reason")); err != nil {
		return err
	}
	_, err = s.want(ctx, http.StatusOK, http.MethodPost, reportLock+"/release", object{"token": bob.text("token")})
	return err
}

// millis formats a duration, rounded to 1 ms, or to 10 µs if it is shorter than 10 ms.
func millis(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// pause waits for d, or returns an error when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
