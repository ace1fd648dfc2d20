package telemetry

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/instant"
)

// Unit is a unit of CloudWatch.
type Unit string

// The units that Sluice uses.
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
	Seconds      Unit = "Seconds"
	Bytes        Unit = "Bytes"
)

// Metric is a metric with 1 to 100 observations.
type Metric struct {
	Name   string
	Unit   Unit
	Values []float64
}

// Metrics writes metrics in CloudWatch's embedded metric format, one JSON line per call to
// [Metrics.Emit]. CloudWatch Logs converts these lines to metrics. See
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
//
// Dimensions are few and fixed. A value that a caller chooses, such as a key, is never a dimension.
// A Metrics is safe for concurrent use.
type Metrics struct {
	mu        sync.Mutex
	w         io.Writer
	namespace string
	base      map[string]string
	now       func() time.Time
}

// DefaultNamespace is the namespace of metrics if the deployment does not set one.
const DefaultNamespace = "Sluice"

// NewMetrics returns Metrics that write to w in [DefaultNamespace]. Every metric has the dimension
// "function", with the given value.
func NewMetrics(w io.Writer, function string) *Metrics {
	return NewMetricsIn(w, DefaultNamespace, function)
}

// NewMetricsIn is [NewMetrics] with a given namespace.
func NewMetricsIn(w io.Writer, namespace, function string) *Metrics {
	return &Metrics{w: w, namespace: namespace, base: map[string]string{"function": function}, now: time.Now}
}

// Discard returns Metrics that drop everything.
func Discard() *Metrics { return NewMetrics(io.Discard, "none") }

// Emit writes metrics with the dimension "function" and the additional dimensions in dims. If the
// write fails, Emit drops the line and reports no error: a request never fails because of its
// metrics.
func (m *Metrics) Emit(dims map[string]string, metrics ...Metric) {
	if len(metrics) == 0 {
		return
	}
	line := make(map[string]any, len(dims)+len(metrics)+2)
	all := maps.Clone(m.base)
	maps.Copy(all, dims)
	for k, v := range all {
		line[k] = v
	}
	type definition struct {
		Name string `json:"Name"`
		Unit Unit   `json:"Unit"`
	}
	definitions := make([]definition, len(metrics))
	for i, metric := range metrics {
		definitions[i] = definition{Name: metric.Name, Unit: metric.Unit}
		line[metric.Name] = value(metric.Values)
	}
	line["_aws"] = map[string]any{
		"Timestamp": m.now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace":  m.namespace,
			"Dimensions": [][]string{slices.Sorted(maps.Keys(all))},
			"Metrics":    definitions,
		}},
	}
	text, err := json.Marshal(line)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.w.Write(append(text, '\n'))
}

func value(values []float64) any {
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// One returns a metric with a single value.
func One(name string, unit Unit, v float64) Metric {
	return Metric{Name: name, Unit: unit, Values: []float64{v}}
}

// Span returns a metric with a single value in milliseconds.
func Span(name string, d time.Duration) Metric {
	return One(name, Milliseconds, instant.FloatMilliseconds(d))
}
