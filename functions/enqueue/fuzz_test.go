package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/httpapi"
)

// FuzzNoRequestBreaksTheFunction requires that no request causes a panic or a 5xx status, and that
// every enqueued job can be read and sent to SQS.
func FuzzNoRequestBreaksTheFunction(f *testing.F) {
	fix := start(f)
	fix.post(f, jobsPath, object{"payload": 1, "id": "a", "delay_ms": 60_000})
	fix.post(f, jobsPath, object{"payload": 1, "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
	for _, seed := range [][3]string{
		{"POST", "/v1/queues/orders/jobs",
			`{"payload":{"n":1},"id":"b","delay_ms":5,"headers":{"h":"v"},"max_attempts":3,"ack_timeout_ms":1000,"backoff":{"initial_ms":1,"max_ms":2,"multiplier":1.5,"jitter":false}}`},
		{"POST", "/v1/queues/orders/jobs",
			`{"payload":"\ud800\u0000","run_at":"0001-01-01T00:00:00Z","expires_at":"9999-12-31T23:59:59.999Z"}`},
		{"POST", "/v1/queues/orders/jobs", "{\"payload\":\"\uFFFF\",\"headers\":{\"\":\"\"}}"},
		{"POST", "/v1/queues/orders/jobs",
			`{"payload":null,"delay_ms":9223372036854775807,"backoff":{"multiplier":1e308}}`},
		{"POST", "/v1/queues/orders/jobs",
			`{"payload":1,"durability":"dynamodb","run_at":"2030-06-01T00:00:00+02:00"}`},
		{"POST", "/v1/queues/ordered/jobs", `{"payload":[],"group":"g","id":"x:1"}`},
		{"POST", "/v1/queues/orders/jobs/batch",
			`{"jobs":[{"payload":1},{"payload":1,"id":"a"},{},{"payload":2,"durability":"dynamodb"}]}`},
		{"GET", "/v1/queues/orders/jobs?state=scheduled&limit=1&cursor=MC4wLi1pbmYuMA", ""},
		{"GET", "/v1/queues/orders/jobs?cursor=MC4wLngueA", ""},
		{"GET", "/v1/queues/orders/jobs/a", ""},
		{"PATCH", "/v1/queues/orders/jobs/d", `{"run_at":"2031-01-01T00:00:00.5Z","payload":{}}`},
		{"DELETE", "/v1/queues/orders/jobs/d", ""},
		{"POST", "/v1/queues/orders/jobs/a/ack", `{"attempt":1}`},
		{"POST", "/v1/queues/orders/jobs/a/nack", `{"attempt":100,"error":"\n\t\u0000","delay_ms":0}`},
		{"GET", "/v1/queues", ""},
		{"POST", "/v1/queues/orders/pause", `{"until":"2030-01-01T00:00:00Z"}`},
		{"POST", "/v1/queues/orders/resume", ""},
		{"POST", "/v1/queues/orders/redrive", `{"ids":["a","b"]}`},
		{"PATCH", "/v1//queues/../%2e", `{`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	handle := httpapi.Lambda(fix.Handler)
	f.Fuzz(func(t *testing.T, method, target, body string) {
		e := events.APIGatewayV2HTTPRequest{Version: "2.0", Body: body,
			Headers: map[string]string{"content-type": "application/json"}}
		e.RawPath, e.RawQueryString, _ = strings.Cut(target, "?")
		e.RequestContext.HTTP.Method = method
		response, err := handle(t.Context(), e)
		if err != nil {
			t.Fatalf("%s %q: %v", method, target, err)
		}
		if response.StatusCode < 200 || response.StatusCode >= 500 {
			t.Fatalf("%s %q %q: %+v", method, target, body, response)
		}
		if response.Body != "" && !json.Valid([]byte(response.Body)) {
			t.Fatalf("%s %q: the answer is not JSON: %s", method, target, response.Body)
		}
		if response.StatusCode == http.StatusAccepted {
			fix.requireSendable(t, response.Body)
		}
	})
}

// requireSendable requires that the sender can send a job that was just enqueued. answer is the
// API's answer to the enqueue.
func (f *fixture) requireSendable(t *testing.T, answer string) {
	t.Helper()
	var taken struct{ ID, Queue string }
	if err := json.Unmarshal([]byte(answer), &taken); err != nil {
		t.Fatal(err)
	}
	info, err := f.queues.Get(t.Context(), taken.Queue, taken.ID)
	if err != nil {
		t.Fatal(err)
	}
	job := delayqueue.Claimed{ID: info.ID, Attempt: 1, RunAt: info.RunAt, Payload: info.Payload, Group: info.Group,
		Headers: info.Headers}
	if r := sqssender.New(accepting{}, 1).Send(t.Context(), taken.Queue, f.urls[taken.Queue],
		[]delayqueue.Claimed{job}); r[0].Outcome != sqssender.Accepted {
		t.Fatalf("the job was enqueued but can never be sent: %+v", r[0])
	}
}

// accepting is a fake SQS that accepts every message. A job that is not sent was therefore refused
// by the sender itself.
type accepting struct{}

// SendMessageBatch implements sqssender.API.
func (accepting) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput,
	_ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}
