package client

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"time"
)

// Health is the state of the API and its dependencies.
type Health struct {
	// Status is "ok", "warn" or "unhealthy".
	Status string        `json:"status"`
	Checks []HealthCheck `json:"checks"`
}

// HealthCheck is the state of one dependency. Its JSON form is the same as in the API, with the
// latency in milliseconds.
type HealthCheck struct {
	Name string `json:"name"`
	// Status is "ok", "warn", "unknown", "unsafe" or "down".
	Status string `json:"status"`
	// Latency is the duration of the check.
	Latency time.Duration `json:"-"`
	// Detail describes a status other than "ok".
	Detail string `json:"detail,omitempty"`
}

type plainHealthCheck HealthCheck

type healthCheckBody struct {
	plainHealthCheck

	LatencyMS float64 `json:"latency_ms"`
}

// MarshalJSON implements json.Marshaler.
func (h HealthCheck) MarshalJSON() ([]byte, error) {
	return json.Marshal(healthCheckBody{plainHealthCheck(h), float64(h.Latency) / float64(time.Millisecond)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *HealthCheck) UnmarshalJSON(text []byte) error {
	var b healthCheckBody
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	*h = HealthCheck(b.plainHealthCheck)
	h.Latency = time.Duration(math.Round(b.LatencyMS * float64(time.Millisecond)))
	return nil
}

// Healthy reports whether no dependency is down or unsafe.
func (h Health) Healthy() bool { return h.Status != "unhealthy" && h.Status != "" }

// Health checks the dependencies of the API. It returns no error for an unhealthy API.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	_, err := c.do(ctx, call{
		op: "checking the health of the API", method: "GET", path: pathTo("v1", "health"), out: &h,
		statuses: []int{http.StatusServiceUnavailable},
	})
	return h, err
}
