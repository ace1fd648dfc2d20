package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// BenchmarkHandlerOverhead measures the time that HTTP handling adds to a decision. It alternates
// between a request through the whole handler and a direct call to the limiter, on the same Redis.
// Its metrics are the difference between the two medians and the median of the direct call.
func BenchmarkHandlerOverhead(b *testing.B) {
	f := start(b)
	f.put(b, "bench", rule("r", "token_bucket", 1_000_000, 1000))
	bench := policy.Policy{Name: "bench", Rules: []policy.Rule{
		{Name: "r", Algorithm: policy.TokenBucket, Limit: 1_000_000, Window: time.Second},
	}}

	var handled, direct []time.Duration
	for b.Loop() {
		r := apitest.NewRequest(b.Context(), b, http.MethodPost, "/v1/limits/bench/check", `{"key": "ann"}`)
		w := httptest.NewRecorder()
		began := time.Now()
		f.Handler.ServeHTTP(w, r)
		handled = append(handled, time.Since(began))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body.String())
		}
		f.Log.Reset()

		began = time.Now()
		d, err := f.limiter.Check(b.Context(), ratelimit.Check{Policy: bench, Key: "ann"})
		direct = append(direct, time.Since(began))
		require.NoError(b, err)
		require.True(b, d.Allowed)
	}

	median := func(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }
	b.ReportMetric(float64((median(handled)-median(direct)).Nanoseconds())/1000, "overhead-µs")
	b.ReportMetric(float64(median(direct).Nanoseconds())/1000, "decision-µs")
}
