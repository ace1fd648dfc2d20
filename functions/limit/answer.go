package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// quotaExceeded is the problem type that draft-ietf-httpapi-ratelimit-headers-10 registers.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// What Sluice-Degraded says: decisions are made without Redis; policies are the last known ones,
// since their store is away or slow.
const (
	limiterLocal   = "limiter-local"
	policiesCached = "policies-cached"
)

func degrade(w http.ResponseWriter, what string) {
	if before := w.Header().Get("Sluice-Degraded"); before != "" {
		what = before + ", " + what
	}
	httpapi.Degraded(w, what)
}

// answer writes a decision: 200, or 429 as a problem with the decision's own fields beside it.
func answer(w http.ResponseWriter, d *ratelimit.Decision) error {
	if d.Allowed {
		return show(w, d)
	}
	setHeaders(w, d)
	return exceeded(d, d)
}

// show writes a decision with 200.
func show(w http.ResponseWriter, d *ratelimit.Decision) error {
	setHeaders(w, d)
	return httpapi.Write(w, http.StatusOK, d)
}

// answerAll writes the decisions of a batch, with the headers of the tightest.
func answerAll(w http.ResponseWriter, decisions []ratelimit.Decision, allowed bool) error {
	worst := &decisions[0]
	for i := range decisions {
		if tighter(&decisions[i], worst) {
			worst = &decisions[i]
		}
	}
	setHeaders(w, worst)
	body := map[string]any{"decisions": decisions}
	if allowed {
		return httpapi.Write(w, http.StatusOK, body)
	}
	return exceeded(worst, body)
}

// tighter orders decisions: a denial before what is allowed, then the longest wait, then the least
// remaining.
func tighter(a, b *ratelimit.Decision) bool {
	if a.Allowed != b.Allowed {
		return b.Allowed
	}
	if wa, wb := wait(a), wait(b); wa != wb {
		return wa > wb
	}
	return a.Remaining < b.Remaining
}

func wait(d *ratelimit.Decision) int64 {
	if d.RetryAfterMS == nil {
		return math.MaxInt64
	}
	return *d.RetryAfterMS
}

// exceeded is the 429 for d, with body's fields in the problem document.
func exceeded(d *ratelimit.Decision, body any) error {
	extra, err := fields(body)
	if err != nil {
		return err
	}
	detail := fmt.Sprintf("the policy %q denies this key", d.Policy)
	if d.Violated != "" {
		extra["violated-policies"] = []ratelimit.RuleName{d.Violated}
		detail = fmt.Sprintf("the rule %q of the policy %q denies this key", d.Violated, d.Policy)
	}
	extra["type"] = quotaExceeded
	f := &fault.Error{Code: fault.QuotaExceeded, Detail: detail, Extra: extra}
	if d.RetryAfterMS != nil {
		f.RetryAfter = instant.Milliseconds(*d.RetryAfterMS)
	}
	return f
}

func fields(body any) (map[string]any, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("error encoding a decision: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("error encoding a decision: %w", err)
	}
	return out, nil
}

// setHeaders writes RateLimit-Policy and RateLimit after draft-ietf-httpapi-ratelimit-headers-10:
// structured field lists (RFC 9651). A rule's name needs no escaping in them. q is the most that
// may pass at once; t the seconds within which no more than r may: until it is full again, or on a
// denial until the retry.
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
		policies[i] = `"` + r.Name + `";q=` + strconv.FormatInt(r.Capacity(), 10) + `;w=` +
			strconv.FormatInt(max(1, instant.CeilSeconds(instant.Milliseconds(r.WindowMS))), 10)
	}
	until := tightest.ResetAfterMS
	if !d.Allowed && d.RetryAfterMS != nil {
		until = *d.RetryAfterMS
	}
	w.Header().Set("RateLimit-Policy", strings.Join(policies, ", "))
	w.Header().Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, tightest.Name, tightest.Remaining, instant.CeilSeconds(instant.Milliseconds(until))))
}
