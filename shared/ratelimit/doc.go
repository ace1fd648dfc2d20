// Package ratelimit makes rate-limit decisions: five algorithms in exact integer arithmetic,
// several rules for each key, and all-or-nothing charging. The state is in Redis. While Redis is
// unavailable, by default each instance counts in its own memory and grants a share of each limit.
//
// A [Limiter] needs only a Redis client of go-redis:
//
//	limiter := ratelimit.FromClient(ctx, redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}))
//	exports := policy.Policy{Name: "export", Rules: []policy.Rule{
//		{Name: "hourly", Algorithm: policy.SlidingWindow, Limit: 500, Window: time.Hour},
//	}}
//	d, err := limiter.Check(ctx, ratelimit.Check{Policy: exports, Key: "tenant-7", Cost: 5})
//	if err == nil && !d.Allowed {
//		// Denied by the rule d.Violated; the same cost fits after d.RetryAfter.
//	}
//
// A denial is a [Decision], not an error; [Decision.Err] converts it into one that matches
// [ErrDenied]. Every method validates its input and names all invalid fields in an error that
// matches [ErrInvalid]. Any other error, except the context's own, is a defect: for example, one of
// the limiter's keys has the wrong Redis type.
//
// # Stability
//
// Before version 1.0 this package may change in any minor version. The HTTP API is the stable
// surface. The format of the state in Redis may also change. A key whose state has an unknown
// format starts without charges.
package ratelimit
