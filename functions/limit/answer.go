package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// quotaExceeded is the problem type that draft-ietf-httpapi-ratelimit-headers-10 registers.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// Values of the Sluice-Degraded header.
const (
	limiterLocal   = "limiter-local"   // the decision was made without Redis
	policiesCached = "policies-cached" // the policy store is unavailable or slow; the policy may be outdated
)

// degrade adds a value to the Sluice-Degraded header.
func degrade(w http.ResponseWriter, value string) {
	if before := w.Header().Get("Sluice-Degraded"); before != "" {
		value = before + ", " + value
	}
	httpapi.Degraded(w, value)
}

// decisionBody is the JSON form of a decision.
type decisionBody struct {
	Allowed      bool       `json:"allowed"`
	Policy       string     `json:"policy"`
	Key          string     `json:"key"`
	Cost         int64      `json:"cost"`
	Remaining    int64      `json:"remaining"`
	Limit        int64      `json:"limit"`
	ResetAfterMS int64      `json:"reset_after_ms"`
	RetryAfterMS *int64     `json:"retry_after_ms"`
	Violated     *string    `json:"violated"`
	Mode         string     `json:"mode"`
	Degraded     bool       `json:"degraded"`
	Rules        []ruleBody `json:"rules"`
}

type ruleBody struct {
	Name         string           `json:"name"`
	Algorithm    policy.Algorithm `json:"algorithm"`
	Limit        int64            `json:"limit"`
	WindowMS     int64            `json:"window_ms"`
	Remaining    int64            `json:"remaining"`
	ResetAfterMS int64            `json:"reset_after_ms"`
	RetryAfterMS *int64           `json:"retry_after_ms"`
}

func bodyOf(d *ratelimit.Decision) decisionBody {
	body := decisionBody{
		Allowed: d.Allowed, Policy: d.Policy, Key: d.Key, Cost: d.Cost, Remaining: d.Remaining, Limit: d.Limit,
		ResetAfterMS: instant.CeilMilliseconds(d.ResetAfter), RetryAfterMS: retryMS(d.RetryAfter),
		Mode: string(d.Mode), Degraded: d.Degraded, Rules: make([]ruleBody, len(d.Rules)),
	}
	if d.Violated != "" {
		body.Violated = &d.Violated
	}
	for i, r := range d.Rules {
		body.Rules[i] = ruleBody{
			Name: r.Rule.Name, Algorithm: r.Rule.Algorithm, Limit: r.Rule.Limit,
			WindowMS: r.Rule.Window.Milliseconds(), Remaining: r.Remaining,
			ResetAfterMS: instant.CeilMilliseconds(r.ResetAfter), RetryAfterMS: retryMS(r.RetryAfter),
		}
	}

	return body
}

// retryMS returns nil, which is null in JSON, if waiting cannot help.
func retryMS(d time.Duration) *int64 {
	if d == ratelimit.Never {
		return nil
	}
	ms := instant.CeilMilliseconds(d)

	return &ms
}

// answer writes a decision with the status 200 or, if it is a denial, returns the problem for 429.
func answer(w http.ResponseWriter, d *ratelimit.Decision) error {
	if d.Allowed {
		return show(w, d)
	}
	setHeaders(w, d)

	return exceeded(d, bodyOf(d))
}

// show writes a decision with the status 200.
func show(w http.ResponseWriter, d *ratelimit.Decision) error {
	setHeaders(w, d)
	return httpapi.Write(w, http.StatusOK, bodyOf(d))
}

// answerAll writes the decisions of a batch with the headers of the tightest one.
func answerAll(w http.ResponseWriter, decisions []ratelimit.Decision, allowed bool) error {
	tightest := &decisions[0]
	bodies := make([]decisionBody, len(decisions))
	for i := range decisions {
		bodies[i] = bodyOf(&decisions[i])
		if tighter(&decisions[i], tightest) {
			tightest = &decisions[i]
		}
	}
	setHeaders(w, tightest)

	body := map[string]any{"decisions": bodies}
	if allowed {
		return httpapi.Write(w, http.StatusOK, body)
	}

	return exceeded(tightest, body)
}

// tighter orders decisions: denials first, then the longest retry time, then the least remaining.
func tighter(a, b *ratelimit.Decision) bool {
	if a.Allowed != b.Allowed {
		return b.Allowed
	}
	if a.RetryAfter != b.RetryAfter {
		return a.RetryAfter > b.RetryAfter
	}

	return a.Remaining < b.Remaining
}

// exceeded returns the 429 for a denial, with the fields of body in the problem document.
func exceeded(d *ratelimit.Decision, body any) error {
	err := d.Err()
	var problem *fault.Error
	if !errors.As(err, &problem) {
		return err
	}

	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("error encoding a decision: %w", err)
	}
	if err := json.Unmarshal(text, &problem.Extra); err != nil {
		return fmt.Errorf("error encoding a decision: %w", err)
	}
	if d.Violated != "" {
		problem.Extra["violated-policies"] = []string{d.Violated}
	}
	problem.Extra["type"] = quotaExceeded

	return problem
}

// setHeaders writes RateLimit-Policy and RateLimit as draft-ietf-httpapi-ratelimit-headers-10
// defines them: lists of structured fields (RFC 9651), in which a rule's name needs no escaping. q
// is the capacity, w the window in seconds, r the remaining units, and t the seconds until the rule
// is full or, for a denial, until the retry time.
func setHeaders(w http.ResponseWriter, d *ratelimit.Decision) {
	if d.Degraded {
		degrade(w, limiterLocal)
	}
	tightest := d.Tightest()
	if tightest == nil {
		return
	}

	policies := make([]string, len(d.Rules))
	for i, r := range d.Rules {
		policies[i] = `"` + r.Rule.Name + `";q=` + strconv.FormatInt(r.Rule.Capacity(), 10) + `;w=` +
			strconv.FormatInt(instant.CeilSeconds(r.Rule.Window), 10)
	}
	until := tightest.ResetAfter
	if !d.Allowed && d.RetryAfter != ratelimit.Never {
		until = d.RetryAfter
	}
	w.Header().Set("RateLimit-Policy", strings.Join(policies, ", "))
	w.Header().Set("RateLimit",
		fmt.Sprintf(`"%s";r=%d;t=%d`, tightest.Rule.Name, tightest.Remaining, instant.CeilSeconds(until)))
}
