// Package policy defines rate-limit policies, their defaults and their validation, and selects the
// rules that apply to a key. It performs no I/O; package dynamopolicy stores policies in DynamoDB.
//
// A [Policy] holds 1 to 8 rules, all of which apply to each key, and overrides for single keys or
// for prefixes of keys:
//
//	p, err := policy.Policy{
//		Name: "export",
//		Rules: []policy.Rule{
//			{Name: "second", Algorithm: policy.TokenBucket, Limit: 10, Window: time.Second},
//			{Name: "hourly", Algorithm: policy.SlidingWindow, Limit: 500, Window: time.Hour},
//		},
//		Overrides: []policy.Override{{Key: "bot-*", Mode: policy.Deny}},
//	}.Normalize()
//
// [Policy.Normalize] fills in the defaults and rejects invalid values; [Policy.For] returns the
// settings that apply to one key. Package ratelimit makes the decisions. [Document] is the JSON
// form of a policy, in HTTP bodies and in the store.
//
// # Stability
//
// Before version 1.0 this package may change in any minor version. The HTTP API is the stable
// surface.
package policy
