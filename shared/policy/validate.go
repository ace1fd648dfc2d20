package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/shared/fault"
)

// Maximums of a policy.
const (
	MaxRules       = 8
	MaxWindow      = 366 * 24 * time.Hour
	MaxLimit       = 1_000_000_000
	MaxExactLimit  = 100_000 // for a SlidingWindow, which stores every admitted check
	MaxDescription = 1024    // bytes
	MaxOverrides   = 1000
	MaxKey         = 512 // bytes

	maxDocument = 350_000 // bytes of JSON; the maximum size of a DynamoDB item is 400 KB
)

// Normalize fills in the defaults and validates the result. Name is required. Errors: [ErrInvalid],
// which names every invalid field.
func (p Policy) Normalize() (Policy, error) {
	s := Settings{Mode: p.Mode, OnUnavailable: p.OnUnavailable, LocalShare: p.LocalShare}
	s.setDefaults()
	p.Mode, p.OnUnavailable, p.LocalShare = s.Mode, s.OnUnavailable, s.LocalShare

	return p, p.Validate()
}

// Validate reports every invalid field. It does not fill in defaults. Errors: [ErrInvalid].
func (p Policy) Validate() error {
	var f fault.Fields
	f.CheckName("name", p.Name)
	if len(p.Description) > MaxDescription {
		f.Add("description", "must be at most %d bytes", MaxDescription)
	}
	s := Settings{Mode: p.Mode, Rules: p.Rules, OnUnavailable: p.OnUnavailable, LocalShare: p.LocalShare}
	s.Validate(&f)
	checkOverrides(&f, p.Overrides)
	if text, err := json.Marshal(p.Document()); err == nil && len(text) > maxDocument {
		f.Add("overrides", "must be fewer or shorter: the policy exceeds %d bytes of JSON", maxDocument)
	}

	return f.Err()
}

// CheckKey adds field to f if key is not 1 to [MaxKey] bytes of UTF-8.
func CheckKey(f *fault.Fields, field, key string) {
	if !ValidKey(key) {
		f.Add(field, "must be 1 to %d bytes of UTF-8", MaxKey)
	}
}

// ValidKey reports whether key is 1 to [MaxKey] bytes of UTF-8.
func ValidKey(key string) bool { return len(key) >= 1 && len(key) <= MaxKey && utf8.ValidString(key) }

func checkMode(f *fault.Fields, field string, m Mode) {
	switch m {
	case Enforce, Shadow, Deny, Allow:
	default:
		f.Add(field, `must be "enforce", "shadow", "deny" or "allow"`)
	}
}

// checkRules runs on every rate-limit check, so it formats text only for invalid rules.
func checkRules(f *fault.Fields, field string, rules []Rule) {
	if len(rules) < 1 || len(rules) > MaxRules {
		f.Add(field, "must be 1 to %d rules", MaxRules)
	}

	for i := range rules {
		member := func(name string) string { return fmt.Sprintf("%s[%d].%s", field, i, name) }
		if !fault.ValidName(rules[i].Name) {
			f.Add(member("name"), fault.NameMessage)
		}
		for first := range rules[:i] {
			if rules[first].Name == rules[i].Name {
				f.Add(member("name"), "is already the name of %s[%d]", field, first)
				break
			}
		}
		rules[i].check(f, member)
	}
}

// check adds the invalid fields of a rule to f, except the name, which checkRules checks.
func (r *Rule) check(f *fault.Fields, member func(name string) string) {
	validAlgorithm, allowsBurst := r.Algorithm.check()
	if !validAlgorithm {
		f.Add(member("algorithm"),
			`must be "fixed_window", "sliding_window", "sliding_window_counter", "token_bucket" or "gcra"`)
	}

	most := int64(MaxLimit)
	if r.Algorithm == SlidingWindow {
		most = MaxExactLimit
	}
	validLimit := r.Limit >= 1 && r.Limit <= most
	if !validLimit {
		f.Add(member("limit"), "must be 1 to %d", most)
	}
	validWindow := r.Window >= time.Millisecond && r.Window <= MaxWindow && r.Window%time.Millisecond == 0
	if !validWindow {
		f.Add(member("window_ms"), "must be a whole number of milliseconds, 1 to %d (366 days)",
			MaxWindow.Milliseconds())
	}

	switch {
	case r.Burst != 0 && validAlgorithm && !allowsBurst:
		f.Add(member("burst"), "is only for token_bucket and gcra")
	case r.Burst < 0 || r.Burst > MaxLimit:
		f.Add(member("burst"), burstRange, MaxLimit)
	case validLimit && validWindow && r.Tick() == 0:
		f.Add(member("limit"), "is too large for a window of this length: the integer arithmetic would overflow")
	}
}

func (a Algorithm) check() (valid, allowsBurst bool) {
	switch a {
	case TokenBucket, GCRA:
		return true, true
	case FixedWindow, SlidingWindow, SlidingWindowCounter:
		return true, false
	default:
		return false, false
	}
}

const burstRange = "must be 1 to %d; leave it out to use the limit"

func checkOverrides(f *fault.Fields, overrides []Override) {
	if len(overrides) > MaxOverrides {
		f.Add("overrides", "must be at most %d", MaxOverrides)
	}

	seen := make(map[string]int, len(overrides))
	for i, o := range overrides {
		at := fmt.Sprintf("overrides[%d]", i)
		switch {
		case !ValidKey(o.Key):
			f.Add(at+".key", "must be 1 to %d bytes of UTF-8", MaxKey)
		case strings.Contains(strings.TrimSuffix(o.Key, "*"), "*"):
			f.Add(at+".key", "may contain a * only at its end, which makes it a prefix")
		}
		if first, duplicate := seen[o.Key]; duplicate {
			f.Add(at+".key", "is already the key of overrides[%d]", first)
		} else {
			seen[o.Key] = i
		}

		if o.Mode != "" {
			checkMode(f, at+".mode", o.Mode)
		}
		if o.Rules != nil {
			checkRules(f, at+".rules", o.Rules)
		} else if o.Mode == "" {
			f.Add(at, "must have a mode, rules or both")
		}
	}
}
