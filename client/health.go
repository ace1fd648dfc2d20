package client

import (
	"context"
	"net/http"
)

// Health is what the API says of its dependencies.
type Health struct {
	Status string        `json:"status"` // "ok", "warn" or "unhealthy"
	Checks []HealthCheck `json:"checks"`
}

// HealthCheck is one dependency.
type HealthCheck struct {
	Name      string  `json:"name"`
	Status    string  `json:"status"` // "ok", "warn", "unknown", "unsafe" or "down"
	LatencyMS float64 `json:"latency_ms"`
	Detail    string  `json:"detail,omitempty"`
}

// Healthy is whether nothing is down or unsafe.
func (h Health) Healthy() bool { return h.Status != "unhealthy" && h.Status != "" }

// Health looks at the API's dependencies. An unhealthy API is no error: look at the answer.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	_, err := c.do(ctx, call{
		op: "asking for health", method: "GET", path: pathTo("v1", "health"), out: &h,
		statuses: []int{http.StatusServiceUnavailable},
	})
	return h, err
}
