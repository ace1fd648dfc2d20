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

// retryMS returns d in milliseconds, rounded up, or nil (null in JSON) if waiting cannot help.
func retryMS(d time.Duration) *int64 {
	if d == ratelimit.Never {
		return nil
	}
	ms := instant.CeilMilliseconds(d)

	return &ms
}

// answer writes an allowed decision with the status 200, or returns a 429 problem for a denial.
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

// answerAll answers a batch: with the status 200 if allowed is true, and with a 429 problem
// otherwise. The headers describe the tightest decision.
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

// tighter reports whether a is tighter than b. A denial is tighter than an allowed decision. Of two
// denials, or of two allowed decisions, the one with the longer retry time is tighter. If the retry
// times are equal, the one with fewer remaining units is tighter.
func tighter(a, b *ratelimit.Decision) bool {
	if a.Allowed != b.Allowed {
		return b.Allowed
	}
	if a.RetryAfter != b.RetryAfter {
		return a.RetryAfter > b.RetryAfter
	}

	return a.Remaining < b.Remaining
}

// exceeded returns the 429 problem for a denial. The problem document also has the members of
// body.
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

// setHeaders sets the headers RateLimit-Policy and RateLimit, which
// draft-ietf-httpapi-ratelimit-headers-10 defines as structured-field lists (RFC 9651). The items
// are rule names, which need no escaping. Their parameters are:
//
//	q  the capacity of the rule
//	w  the window of the rule, in seconds
//	r  the number of remaining units
//	t  the number of seconds until all units are available again or, for a denial, until a retry
//	   can succeed
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
