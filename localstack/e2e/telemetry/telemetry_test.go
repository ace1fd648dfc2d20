// Package telemetry_test checks every line that the functions print when they run as processes.
package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/telemetry"
)

// canary is part of all private data that the tests send: payloads, tokens, keys, metadata and
// headers. No printed line may contain it.
const canary = "c4n4ry"

// printed records the output of the functions.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.text.String()
	return strings.Split(strings.TrimSuffix(text[:strings.LastIndex(text, "\n")+1], "\n"), "\n")
}

// line is a printed JSON object: a metric if it has the member _aws, and a log record otherwise.
type line struct {
	text   string
	fields map[string]any
	embed  struct {
		AWS *struct {
			Timestamp int64 `json:"Timestamp"`
			Metrics   []struct {
				Namespace  string     `json:"Namespace"`
				Dimensions [][]string `json:"Dimensions"`
				Metrics    []struct{ Name, Unit string }
			} `json:"CloudWatchMetrics"`
		} `json:"_aws"`
	}
}

func (p *printed) parsed(t *testing.T) (metrics, log []line) {
	t.Helper()
	for _, text := range p.lines() {
		l := line{text: text}
		require.NoError(t, json.Unmarshal([]byte(text), &l.fields), "a line is not a JSON object: %s", text)
		require.NoError(t, json.Unmarshal([]byte(text), &l.embed), "%s", text)
		if l.embed.AWS != nil {
			metrics = append(metrics, l)
		} else {
			log = append(log, l)
		}
	}
	return metrics, log
}

// seen returns the metrics that were emitted, as function/name.
func seen(metrics []line) map[string]bool {
	out := make(map[string]bool)
	for _, l := range metrics {
		for _, m := range l.embed.AWS.Metrics[0].Metrics {
			out[fmt.Sprint(l.fields["function"], "/", m.Name)] = true
		}
	}
	return out
}

func call(t *testing.T, method, path, body string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, system.APIURL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	answer := make(map[string]any)
	if len(text) > 0 {
		require.NoError(t, json.Unmarshal(text, &answer), "%s", text)
	}
	return response.StatusCode, answer
}

// use sends valid and invalid requests for locks, jobs, policies and limits.
func use(t *testing.T) {
	t.Helper()
	token := canary + "-token-0123456789"
	held := `{"token":"` + token + `","ttl_ms":5000,"metadata":{"why":"` + canary + `"}}`
	want := func(status int, method, path, body string) {
		got, answer := call(t, method, path, body)
		require.Equal(t, status, got, "%s %s: %v", method, path, answer)
	}
	want(200, "POST", "/v1/locks/report/acquire", held)
	want(409, "POST", "/v1/locks/report/acquire", `{"wait_ms":50}`)
	want(409, "POST", "/v1/locks/report/release", `{"token":"`+canary+`-another-0123456789"}`)
	want(200, "POST", "/v1/locks/report/release", `{"token":"`+token+`"}`)
	want(400, "POST", "/v1/locks/report/acquire", `{"`+canary+`":1}`)
	want(400, "POST", "/v1/locks/report/acquire", `{"token":"`+canary+`"`)
	want(400, "GET", "/v1/locks/report?"+canary+"=1", "")

	want(202, "POST", "/v1/queues/orders/jobs", `{"id":"j1","payload":"`+canary+`","headers":{"h":"`+canary+`"}}`)
	want(202, "POST", "/v1/queues/orders/jobs", `{"id":"j2","payload":"`+canary+`","delay_ms":3600000}`)
	want(400, "POST", "/v1/queues/orders/jobs", `{"payload":"`+canary+`","delay_ms":-1}`)
	want(404, "GET", "/v1/queues/orders/jobs/nothing", "")

	want(201, "PUT", "/v1/policies/login",
		`{"rules":[{"name":"r","algorithm":"fixed_window","limit":1,"window_ms":3600000}]}`)
	want(201, "PUT", "/v1/policies/trial",
		`{"mode":"shadow","rules":[{"name":"r","algorithm":"fixed_window","limit":1,"window_ms":3600000}]}`)
	key := `{"key":"` + canary + `"}`
	want(200, "POST", "/v1/limits/login/check", key)
	want(429, "POST", "/v1/limits/login/check", key)
	want(200, "POST", "/v1/limits/trial/check", key)
	want(200, "POST", "/v1/limits/trial/check", key)
	want(400, "POST", "/v1/limits/login/check", `{"key":"`+canary+`","cost":0}`)
}

// outage kills Redis, sends a request of each kind, and restarts Redis.
func outage(t *testing.T) {
	t.Helper()
	require.NoError(t, server.Kill())
	status, answer := call(t, "POST", "/v1/queues/orders/jobs", `{"id":"j3","payload":"`+canary+`"}`)
	require.Equal(t, 202, status, "%v", answer)
	_, answer = call(t, "POST", "/v1/limits/login/check", `{"key":"`+canary+`"}`)
	require.Equal(t, true, answer["degraded"], "%v", answer)
	status, answer = call(t, "POST", "/v1/locks/report/acquire", `{"token":"`+canary+`-token-0123456789"}`)
	require.Equal(t, 503, status, "%v", answer)
	require.NoError(t, server.Restart(t.Context()))
}

// received waits until SQS has delivered the messages of the given number of jobs.
func received(t *testing.T, jobs int) {
	t.Helper()
	require.Eventually(t, func() bool {
		messages, err := system.SQS.ReceiveMessage(t.Context(),
			&sqs.ReceiveMessageInput{QueueUrl: aws.String(system.QueueURLs["orders"]), MaxNumberOfMessages: 10})
		if err == nil {
			jobs -= len(messages.Messages)
		}
		return jobs <= 0
	}, 30*time.Second, 50*time.Millisecond, "the due jobs must reach SQS")
}

func TestAccessString(t *testing.T) {
	used.Do(func() { use(t); received(t, 1) })
	require.Eventually(t, func() bool {
		status, health := call(t, "GET", "/v1/health", "")
		for _, check := range health["checks"].([]any) {
			row := check.(map[string]any)
			if row["status"] != "ok" {
				t.Log(row)
				return false
			}
		}
		return status == http.StatusOK
	}, 30*time.Second, 200*time.Millisecond, "every health check must pass with the rules of the ACL user")

	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "root", Protocol: 2})
	defer func() { _ = admin.Close() }()
	denied, err := admin.ACLLog(t.Context(), 10).Result()
	require.NoError(t, err)
	require.Empty(t, denied, "the ACL rules deny commands that the functions send")

	as := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: user, Password: password, Protocol: 2})
	defer func() { _ = as.Close() }()
	for _, command := range []string{"FLUSHALL", "KEYS *", "CONFIG GET *", "SHUTDOWN", "ACL LIST", "MONITOR", "SAVE",
		"GET another-application", "PUBLISH other x"} {
		words := strings.Fields(command)
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		require.ErrorContains(t, as.Do(t.Context(), args...).Err(), "NOPERM", command)
	}
}

// rare returns the metrics that the test does not require: the functions emit them only after an
// SQS failure or a long time.
func rare() []string {
	return []string{"returned", "died", "reclaimed", "ack_timeouts", "pruned"}
}

func TestOutput(t *testing.T) {
	used.Do(func() { use(t); received(t, 1) })
	outage(t)
	received(t, 1)
	var expected []string
	for _, d := range telemetry.Catalogue() {
		if !slices.Contains(rare(), d.Name) {
			expected = append(expected, d.Function+"/"+d.Name)
		}
	}
	for _, name := range expected {
		require.Eventually(t, func() bool {
			metrics, _ := out.parsed(t)
			return seen(metrics)[name]
		}, 30*time.Second, 100*time.Millisecond,
			"%s is in the catalogue but was not emitted", name)
	}

	metrics, log := out.parsed(t)
	for _, l := range metrics {
		checkMetric(t, l)
	}
	requests := 0
	for _, l := range log {
		for _, field := range []string{"time", "level", "msg", "function"} {
			require.NotEmpty(t, l.fields[field], "%s is missing: %s", field, l.text)
		}
		if l.fields["msg"] != "request" {
			continue
		}
		requests++
		for _, field := range []string{"request_id", "route", "status", "took_ms", "caller"} {
			require.Contains(t, l.fields, field, l.text)
		}
	}
	require.Greater(t, requests, 15, "one line per request")
	for _, text := range out.lines() {
		require.NotContains(t, text, canary, "payloads, tokens and keys must not be printed")
	}
}

// checkMetric checks that a line has the embedded metric format and that its metrics match the
// catalogue.
func checkMetric(t *testing.T, l line) {
	t.Helper()
	require.WithinDuration(t, time.Now(), time.UnixMilli(l.embed.AWS.Timestamp), 5*time.Minute)
	require.Len(t, l.embed.AWS.Metrics, 1, l.text)
	m := l.embed.AWS.Metrics[0]
	require.Equal(t, telemetry.DefaultNamespace, m.Namespace)
	require.Len(t, m.Dimensions, 1, l.text)
	wanted := map[string]bool{"_aws": true}
	for _, dimension := range m.Dimensions[0] {
		require.IsType(t, "", l.fields[dimension], "a dimension is text: %s", l.text)
		wanted[dimension] = true
	}
	for _, metric := range m.Metrics {
		wanted[metric.Name] = true
		i := slices.IndexFunc(telemetry.Catalogue(), func(d telemetry.Definition) bool {
			dimensions := append([]string{"function"}, d.Dimensions...)
			slices.Sort(dimensions)
			return d.Name == metric.Name && d.Function == l.fields["function"] &&
				slices.Equal(dimensions, m.Dimensions[0])
		})
		require.GreaterOrEqual(t, i, 0, "%s of %v under %v is not in the catalogue: %s", metric.Name,
			l.fields["function"], m.Dimensions[0], l.text)
		require.Equal(t, string(telemetry.Catalogue()[i].Unit), metric.Unit, l.text)
		values, several := l.fields[metric.Name].([]any)
		if !several {
			values = []any{l.fields[metric.Name]}
		}
		require.NotEmpty(t, values, l.text)
		require.LessOrEqual(t, len(values), 100, "CloudWatch accepts at most 100 values of a metric per line")
		for _, v := range values {
			require.IsType(t, 0.0, v, l.text)
			require.GreaterOrEqual(t, v, 0.0, l.text)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(wanted)), slices.Collect(maps.Keys(l.fields)),
		"a line must have exactly the fields of its definition: %s", l.text)
}
