package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

func ExampleFromClient() {
	ctx, client, stop := startRedis()
	defer stop()

	limiter := ratelimit.FromClient(ctx, client)
	exports := policy.Policy{Name: "export", Rules: []policy.Rule{
		{Name: "hourly", Algorithm: policy.SlidingWindow, Limit: 3, Window: time.Hour},
	}}

	for range 4 {
		d, err := limiter.Check(ctx, ratelimit.Check{Policy: exports, Key: "tenant-7"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("allowed:", d.Allowed, "remaining:", d.Remaining, "retry after:", d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// allowed: true remaining: 2 retry after: 0s
	// allowed: true remaining: 1 retry after: 0s
	// allowed: true remaining: 0 retry after: 0s
	// allowed: false remaining: 0 retry after: 1h0m0s
}

// All rules of a policy apply to each check. If one rule denies a check, no rule is charged.
func ExampleLimiter_Check_severalRules() {
	ctx, client, stop := startRedis()
	defer stop()

	limiter := ratelimit.FromClient(ctx, client)
	exports := policy.Policy{Name: "export", Rules: []policy.Rule{
		{Name: "burst", Algorithm: policy.TokenBucket, Limit: 10, Window: time.Minute, Burst: 5},
		{Name: "daily", Algorithm: policy.SlidingWindow, Limit: 100, Window: 24 * time.Hour},
	}}

	for _, cost := range []int64{4, 4, 6} {
		d, err := limiter.Check(ctx, ratelimit.Check{Policy: exports, Key: "tenant-7", Cost: cost})
		if err != nil {
			fmt.Println(err)
			return
		}
		switch {
		case d.Allowed:
			fmt.Println("allowed; left today:", d.Rules[1].Remaining)
		case d.RetryAfter == ratelimit.Never:
			fmt.Printf("denied by %q: the cost exceeds its burst\n", d.Violated)
		default:
			fmt.Printf("denied by %q; left today: %d\n", d.Violated, d.Rules[1].Remaining)
		}
	}
	// Output:
	// allowed; left today: 96
	// denied by "burst"; left today: 96
	// denied by "burst": the cost exceeds its burst
}

// A policy in shadow mode counts and reports violations, but allows every check. Use it to try a
// new limit.
func ExampleLimiter_Check_shadow() {
	ctx, client, stop := startRedis()
	defer stop()

	limiter := ratelimit.FromClient(ctx, client)
	logins := policy.Policy{Name: "login", Mode: policy.Shadow, Rules: []policy.Rule{
		{Name: "per-minute", Algorithm: policy.SlidingWindow, Limit: 1, Window: time.Minute},
	}}

	for range 2 {
		d, err := limiter.Check(ctx, ratelimit.Check{Policy: logins, Key: "ann"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("allowed: %t, violated: %q\n", d.Allowed, d.Violated)
	}
	// Output:
	// allowed: true, violated: ""
	// allowed: true, violated: "per-minute"
}

// Refund returns the unused units of a charge that was based on an estimate.
func ExampleLimiter_Refund() {
	ctx, client, stop := startRedis()
	defer stop()

	limiter := ratelimit.FromClient(ctx, client)
	check := ratelimit.Check{
		Policy: policy.Policy{Name: "tokens", Rules: []policy.Rule{
			{Name: "daily", Algorithm: policy.SlidingWindowCounter, Limit: 1000, Window: 24 * time.Hour},
		}},
		Key:  "tenant-7",
		Cost: 800, // the estimate
	}
	if d, err := limiter.Check(ctx, check); err != nil || !d.Allowed {
		fmt.Println(d.Err(), err)
		return
	}

	check.Cost = 300 // the estimate minus the 500 units that were used
	d, err := limiter.Refund(ctx, check)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("remaining:", d.Remaining)
	// Output:
	// remaining: 500
}

// CheckAll charges all checks or none.
func ExampleLimiter_CheckAll() {
	ctx, client, stop := startRedis()
	defer stop()

	limiter := ratelimit.FromClient(ctx, client)
	hourly := func(name string, limit int64) policy.Policy {
		return policy.Policy{Name: name, Rules: []policy.Rule{
			{Name: "hourly", Algorithm: policy.GCRA, Limit: limit, Window: time.Hour},
		}}
	}
	checks := []ratelimit.Check{
		{Policy: hourly("tenant", 100), Key: "tenant-7"},
		{Policy: hourly("everybody", 1), Key: "export"},
	}

	for range 2 {
		decisions, allowed, err := limiter.CheckAll(ctx, checks)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("allowed:", allowed, "left for the tenant:", decisions[0].Remaining)
	}
	// Output:
	// allowed: true left for the tenant: 99
	// allowed: false left for the tenant: 99
}

// Err converts a denial to an error.
func ExampleDecision_Err() {
	d := ratelimit.Decision{Policy: "export", Violated: "hourly", RetryAfter: time.Minute}
	if err := d.Err(); errors.Is(err, ratelimit.ErrDenied) {
		fmt.Println(err)
	}
	// Output:
	// quota_exceeded: the rule "hourly" of the policy "export" denies this key
}

// startRedis starts a Redis server for an example.
func startRedis() (ctx context.Context, client redis.UniversalClient, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	server, err := redisserver.Start(ctx, redisserver.Options{})
	if err != nil {
		panic(err)
	}
	client = redis.NewClient(&redis.Options{Addr: server.Addr()})

	return ctx, client, func() {
		cancel()
		_ = client.Close()
		_ = server.Close()
	}
}
