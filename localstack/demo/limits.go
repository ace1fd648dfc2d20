package demo

import (
	"context"
	"fmt"
	"net/http"
)

const (
	allowedLogins = 5
	allLogins     = 20
)

func showLimits(ctx context.Context, s *scenario) error {
	policy := object{
		"description":    "five logins per minute and address",
		"on_unavailable": "local", "local_share": 0.5,
		"rules": []object{{"name": "per-minute", "algorithm": "sliding_window", "limit": allowedLogins,
			"window_ms": 60_000}},
	}
	put, err := s.call(ctx, http.MethodPut, "/v1/policies/login", policy)
	if err != nil {
		return err
	}
	if err := s.check(put.status == http.StatusCreated || put.status == http.StatusOK,
		"the policy \"login\" is stored, version %.0f", put.number("version")); err != nil {
		return err
	}
	allowed, denied := 0, 0
	var last, first429 answer
	for range allLogins {
		a, err := s.call(ctx, http.MethodPost, "/v1/limits/login/check", object{"key": s.id("203.0.113.7")})
		if err != nil {
			return err
		}
		switch {
		case a.status == http.StatusOK:
			allowed, last = allowed+1, a
		case a.status == http.StatusTooManyRequests && denied == 0:
			denied, first429 = 1, a
		case a.status == http.StatusTooManyRequests:
			denied++
		default:
			return fmt.Errorf("a check answered %d: %v", a.status, a.body)
		}
	}
	expected := allowed == allowedLogins && denied == allLogins-allowedLogins
	if err := s.check(expected, "%d are allowed, %d are denied", allowed, denied); err != nil {
		return err
	}
	s.note("the fifth:  200  RateLimit: %s  RateLimit-Policy: %s", last.header.Get("RateLimit"),
		last.header.Get("RateLimit-Policy"))
	s.note("the sixth:  429  RateLimit: %s  Retry-After: %s", first429.header.Get("RateLimit"),
		first429.header.Get("Retry-After"))
	return s.check(first429.text("violated") == "per-minute" && first429.header.Get("Retry-After") != "",
		"the denial names the rule, %q, and when to retry", first429.text("violated"))
}
