package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// BenchmarkHandlerOverhead measures what HTTP costs on top of a decision: a request through the
// whole handler, less the same decision asked for directly, one after the other on the same Redis.
// The metrics are the difference of the medians, and the median of the decision alone.
func BenchmarkHandlerOverhead(b *testing.B) {
	f := start(b)
	rule := policy.Rule{Name: "r", Algorithm: policy.TokenBucket, Limit: 1_000_000, WindowMS: 1000}
	f.Want(b, http.StatusCreated, http.MethodPut, "/v1/policies/bench", object{"rules": []policy.Rule{rule}})
	var handled, direct []time.Duration
	body := `{"key": "ann"}`
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/limits/bench/check",
			strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		began := time.Now()
		f.Handler.ServeHTTP(w, r)
		handled = append(handled, time.Since(began))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body.String())
		}
		f.Log.Reset()
		began = time.Now()
		_, allowed, err := f.limiter.Check(b.Context(),
			[]ratelimit.Check{{Policy: "bench", Key: "ann", Cost: 1, Mode: policy.Enforce, Rules: []policy.Rule{rule}}})
		direct = append(direct, time.Since(began))
		require.NoError(b, err)
		require.True(b, allowed)
	}
	median := func(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }
	b.ReportMetric(float64((median(handled)-median(direct)).Nanoseconds())/1000, "overhead-µs")
	b.ReportMetric(float64(median(direct).Nanoseconds())/1000, "decision-µs")
}
