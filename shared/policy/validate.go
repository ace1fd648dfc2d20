package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice/shared/fault"
)

// Ranges of a policy.
const (
	MaxRules        = 8
	MaxWindowMS     = 366 * 24 * 3_600_000
	MaxExactLimit   = 100_000 // of a sliding_window: each admitted unit is remembered
	MaxLimit        = 1_000_000_000
	MaxDescription  = 1024 // bytes
	MaxOverrides    = 1000
	MaxKey          = 512 // bytes
	MaxCost         = 10_000
	maxEncoded      = 350_000 // bytes of JSON; DynamoDB takes 400 KB
	defaultShare    = 0.1
	windowsMessage  = "must be 1 to 31622400000 (366 days)"
	overflowMessage = "is too large for a window of this length: the integer math would overflow"
)

// Normalize fills in the defaults and returns an invalid_request error that names every bad field.
// The name must be set.
func (p Policy) Normalize() (Policy, error) {
	var f fault.Fields
	f.CheckName("name", p.Name)
	if len(p.Description) > MaxDescription {
		f.Add("description", "must be at most %d bytes", MaxDescription)
	}
	if p.Mode == "" {
		p.Mode = Enforce
	}
	checkMode(&f, "mode", p.Mode)
	switch p.OnUnavailable {
	case "":
		p.OnUnavailable = UnavailableLocal
	case UnavailableLocal, UnavailableAllow, UnavailableDeny:
	default:
		f.Add("on_unavailable", `must be "local", "allow" or "deny"`)
	}
	if p.LocalShare == 0 {
		p.LocalShare = defaultShare
	}
	if !(p.LocalShare > 0 && p.LocalShare <= 1) { // NaN fails too
		f.Add("local_share", "must be over 0 and at most 1")
	}
	checkRules(&f, "rules", p.Rules)
	checkOverrides(&f, p.Overrides)
	if text, err := json.Marshal(p); err == nil && len(text) > maxEncoded {
		f.Add("overrides", "the policy is over %d bytes of JSON", maxEncoded)
	}
	return p, f.Err()
}

func checkMode(f *fault.Fields, field string, m Mode) {
	switch m {
	case Enforce, Shadow, Deny, Allow:
	default:
		f.Add(field, `must be "enforce", "shadow", "deny" or "allow"`)
	}
}

func checkRules(f *fault.Fields, field string, rules []Rule) {
	if len(rules) < 1 || len(rules) > MaxRules {
		f.Add(field, "must be 1 to %d rules", MaxRules)
	}
	seen := make(map[string]int, len(rules))
	for i, r := range rules {
		at := fmt.Sprintf("%s[%d]", field, i)
		f.CheckName(at+".name", r.Name)
		if first, taken := seen[r.Name]; taken {
			f.Add(at+".name", "is the name of %s[%d] already", field, first)
		} else {
			seen[r.Name] = i
		}
		r.check(f, at)
	}
}

func (r Rule) check(f *fault.Fields, at string) {
	burstless := false
	switch r.Algorithm {
	case TokenBucket, GCRA:
	case FixedWindow, SlidingWindow, SlidingWindowCounter:
		burstless = true
	default:
		f.Add(at+".algorithm",
			`must be "fixed_window", "sliding_window", "sliding_window_counter", "token_bucket" or "gcra"`)
	}
	most := int64(MaxLimit)
	if r.Algorithm == SlidingWindow {
		most = MaxExactLimit
	}
	ranges := true
	if r.Limit < 1 || r.Limit > most {
		f.Add(at+".limit", "must be 1 to %d", most)
		ranges = false
	}
	if r.WindowMS < 1 || r.WindowMS > MaxWindowMS {
		f.Add(at+".window_ms", windowsMessage)
		ranges = false
	}
	switch {
	case r.Burst != 0 && burstless:
		f.Add(at+".burst", "is only for token_bucket and gcra")
	case r.Burst < 0 || r.Burst > MaxLimit:
		f.Add(at+".burst", "must be 1 to %d", MaxLimit)
	case ranges && r.Tick() == 0:
		f.Add(at+".limit", overflowMessage)
	}
}

func checkOverrides(f *fault.Fields, overrides []Override) {
	if len(overrides) > MaxOverrides {
		f.Add("overrides", "must be at most %d", MaxOverrides)
	}
	seen := make(map[string]int, len(overrides))
	for i, o := range overrides {
		at := fmt.Sprintf("overrides[%d]", i)
		switch {
		case len(o.Key) < 1 || len(o.Key) > MaxKey || !utf8.ValidString(o.Key):
			f.Add(at+".key", "must be 1 to %d bytes of UTF-8", MaxKey)
		case strings.Contains(strings.TrimSuffix(o.Key, "*"), "*"):
			f.Add(at+".key", "may hold a * only at its end, for a prefix")
		}
		if first, taken := seen[o.Key]; taken {
			f.Add(at+".key", "is the key of overrides[%d] already", first)
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

// CheckKey notes a key that is no limiter key.
func CheckKey(f *fault.Fields, field, key string) {
	if len(key) < 1 || len(key) > MaxKey || !utf8.ValidString(key) {
		f.Add(field, "must be 1 to %d bytes of UTF-8", MaxKey)
	}
}

// ETag identifies this version of the policy, as an HTTP entity tag (RFC 9110, 8.8.3) with its
// quotes.
func (s Stored) ETag() string {
	text, _ := json.Marshal(s.Policy) // strings and numbers always marshal
	sum := sha256.Sum256(text)
	return fmt.Sprintf(`"%d-%s"`, s.Version, hex.EncodeToString(sum[:8]))
}
