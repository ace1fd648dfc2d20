package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

const emails = "/v1/queues/emails/jobs"

// receive reads the queue until a message of the job arrives, and deletes that message. Other
// messages remain in the queue.
func receive(t *testing.T, queue, id string) types.Message {
	t.Helper()
	var got *types.Message
	require.Eventually(t, func() bool {
		out, err := system.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(system.QueueURLs[queue]), MaxNumberOfMessages: 10,
			MessageAttributeNames: []string{"All"}, VisibilityTimeout: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return false
		}
		for _, m := range out.Messages {
			if aws.ToString(m.MessageAttributes["sluice-job-id"].StringValue) == id {
				got = &m
			}
		}
		return got != nil
	}, 20*time.Second, 20*time.Millisecond, "no message of job %s arrived", id)
	_, err := system.SQS.DeleteMessage(t.Context(),
		&sqs.DeleteMessageInput{QueueUrl: aws.String(system.QueueURLs[queue]), ReceiptHandle: got.ReceiptHandle})
	require.NoError(t, err)
	return *got
}

// state waits until a job has the given state, and returns the job.
func state(t *testing.T, path, state string) answer {
	t.Helper()
	var a answer
	require.Eventually(t, func() bool {
		a = call(t, "GET", path, nil)
		return a.string("state") == state
	}, 20*time.Second, 10*time.Millisecond, "%s did not become %s", path, state)
	return a
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	t.Run("delayed: arrives with its attributes and never early", func(t *testing.T) {
		t.Parallel()
		id := redistest.Name("job")
		trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		job := want(t, 202, "POST", emails, object{
			"id": id, "payload": object{"to": "ann", "n": []int{1, 2}}, "delay_ms": 700,
			"headers": object{"tenant": "t1"},
		}, "traceparent", trace)
		require.Equal(t, id, job.string("id"))
		require.Equal(t, "scheduled", job.string("state"))
		require.Equal(t, false, job.body["duplicate"])

		m := receive(t, "emails", id)
		require.JSONEq(t, `{"to":"ann","n":[1,2]}`, aws.ToString(m.Body))
		runAt := job.instant(t, "run_at")
		for name, value := range map[string]string{
			"sluice-queue": "emails", "sluice-attempt": "1", "sluice-run-at": fmt.Sprint(runAt.UnixMilli()),
			"tenant": "t1", "traceparent": trace,
		} {
			require.Equal(t, value, aws.ToString(m.MessageAttributes[name].StringValue), name)
		}
		done := state(t, emails+"/"+id, "dispatched")
		require.False(t, done.instant(t, "dispatched_at").Before(runAt), "a job must not be sent early")
		require.Less(t, done.instant(t, "dispatched_at").Sub(runAt), 2*time.Second)
	})

	t.Run("eight headers: arrive within the ten attributes of SQS", func(t *testing.T) {
		t.Parallel()
		id, headers := redistest.Name("job"), object{}
		for i := range 8 {
			headers[fmt.Sprintf("h%d", i)] = fmt.Sprint(i)
		}
		want(t, 202, "POST", emails, object{"id": id, "payload": nil, "headers": headers})
		m := receive(t, "emails", id)
		require.Len(t, m.MessageAttributes, 10)
		require.Equal(t, "4", aws.ToString(m.MessageAttributes["h4"].StringValue))
		rest := aws.ToString(m.MessageAttributes["sluice-headers"].StringValue)
		require.JSONEq(t, `{"h5":"5","h6":"6","h7":"7"}`, rest)
		require.Equal(t, "null", aws.ToString(m.Body), "null is a valid payload")
	})

	t.Run("existing ID: returns the existing job", func(t *testing.T) {
		t.Parallel()
		id := redistest.Name("job")
		first := want(t, 202, "POST", emails, object{"payload": 1, "delay_ms": 3_600_000}, "Idempotency-Key", id)
		require.Equal(t, id, first.string("id"))
		again := want(t, 200, "POST", emails, object{"id": id, "payload": 1, "delay_ms": 5})
		require.Equal(t, true, again.body["duplicate"])
		require.Equal(t, first.string("run_at"), again.string("run_at"), "a duplicate must return the existing job")
		other := want(t, 200, "POST", emails, object{"id": id, "payload": 2})
		require.Equal(t, true, other.body["payload_differs"], "the payload of the second request differs")
		require.EqualValues(t, 1, want(t, 200, "GET", emails+"/"+id, nil).body["payload"])
	})
}

func TestJob(t *testing.T) {
	t.Parallel()
	t.Run("scheduled: is rescheduled, changed and canceled", func(t *testing.T) {
		t.Parallel()
		id := redistest.Name("job")
		path := emails + "/" + id
		want(t, 202, "POST", emails, object{"id": id, "payload": "a", "delay_ms": 3_600_000})
		moved := want(t, 200, "PATCH", path, object{"run_at": "2030-01-02T03:04:05.006Z",
			"payload": object{"b": strings.Repeat("long ", 1000)}})
		require.Equal(t, "2030-01-02T03:04:05.006Z", moved.string("run_at"))
		require.Equal(t, object{"b": strings.Repeat("long ", 1000)}, moved.body["payload"])
		require.Equal(t, "canceled", want(t, 200, "DELETE", path, nil).string("state"))
		require.Equal(t, "canceled", want(t, 200, "DELETE", path, nil).string("state"),
			"a repeated cancel must have the same answer")
		conflict := want(t, 409, "PATCH", path, object{"delay_ms": 1})
		require.Equal(t, "job_conflict", conflict.string("code"))
		require.Equal(t, "canceled", conflict.string("state"))
		require.Equal(t, "job_not_found", want(t, 404, "DELETE", emails+"/unheard-of", nil).string("code"))
	})

	t.Run("attempts: is acknowledged, retried and dies", func(t *testing.T) {
		t.Parallel()
		id := redistest.Name("job")
		path := emails + "/" + id
		want(t, 202, "POST", emails, object{"id": id, "payload": 1, "max_attempts": 2,
			"backoff": object{"initial_ms": 10, "max_ms": 20, "jitter": false}})
		receive(t, "emails", id)
		state(t, path, "awaiting_ack")
		forged := want(t, 409, "POST", path+"/ack", object{"attempt": 2})
		require.Equal(t, "awaiting_ack", forged.string("state"))

		again := want(t, 200, "POST", path+"/nack", object{"attempt": 1, "error": "no luck"})
		require.Equal(t, "scheduled", again.string("state"))
		m := receive(t, "emails", id)
		require.Equal(t, "2", aws.ToString(m.MessageAttributes["sluice-attempt"].StringValue))
		state(t, path, "awaiting_ack")
		require.Equal(t, "dead", want(t, 200, "POST", path+"/nack",
			object{"attempt": 2, "error": "no luck again"}).string("state"))
		dead := want(t, 200, "GET", path, nil)
		require.Equal(t, "no luck again", dead.string("last_error"))

		require.EqualValues(t, 1, want(t, 200, "POST", "/v1/queues/emails/redrive",
			object{"ids": []string{id}}).number("moved"))
		m = receive(t, "emails", id)
		require.Equal(t, "1", aws.ToString(m.MessageAttributes["sluice-attempt"].StringValue),
			"a redrive resets the attempt number to 0, and the next claim raises it to 1")
		state(t, path, "awaiting_ack")
		require.Equal(t, "succeeded", want(t, 200, "POST", path+"/ack", object{"attempt": 1}).string("state"))
		require.Equal(t, "succeeded", want(t, 200, "POST", path+"/ack", object{"attempt": 1}).string("state"),
			"a repeated ack must have the same answer")
	})
}

func TestEnqueueBatch(t *testing.T) {
	t.Parallel()
	jobs := []object{{"payload": 1, "delay_ms": 3_600_000}, {"delay_ms": 1}, {"payload": 3, "max_attempts": 0},
		{"payload": strings.Repeat("x", 256<<10)}}
	a := want(t, 200, "POST", emails+"/batch", object{"jobs": jobs})
	results, _ := a.body["results"].([]any)
	require.Len(t, results, 4)
	require.Equal(t, "scheduled", results[0].(object)["state"])
	for i, code := range map[int]string{1: "invalid_request", 2: "invalid_request", 3: "payload_too_large"} {
		require.Equal(t, code, results[i].(object)["error"].(object)["code"], "job %d", i)
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	const queue = "/v1/queues/pay.fifo"
	paused := want(t, 200, "POST", queue+"/pause", nil)
	require.Equal(t, true, paused.body["paused"])
	for i := range 5 {
		want(t, 202, "POST", queue+"/jobs", object{"payload": i, "group": "g"})
	}
	require.Eventually(t, func() bool {
		return call(t, "GET", queue, nil).number("due") == 5
	}, 5*time.Second, 10*time.Millisecond)

	seen, cursor, pages := map[any]bool{}, "", 0
	for {
		page := want(t, 200, "GET", queue+"/jobs?state=scheduled&limit=2&cursor="+cursor, nil)
		jobs, _ := page.body["jobs"].([]any)
		for _, j := range jobs {
			seen[j.(object)["id"]] = true
		}
		if cursor = page.string("next_cursor"); cursor == "" || pages > 10 {
			break
		}
		pages++
	}
	require.Len(t, seen, 5)

	require.Equal(t, false, want(t, 200, "POST", queue+"/resume", nil).body["paused"])
	for id := range seen {
		receive(t, "pay.fifo", id.(string))
	}
	require.Equal(t, true, want(t, 200, "POST", queue+"/pause",
		object{"until": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}).body["paused"])
	want(t, 200, "POST", queue+"/resume", nil)
	all := want(t, 200, "GET", "/v1/queues", nil)
	require.Len(t, all.body["queues"], 3)
}

func TestInvalidJobRequests(t *testing.T) {
	t.Parallel()
	for title, tc := range map[string]struct {
		method, path string
		body         any
		status       int
		code, field  string
	}{
		"no payload": {"POST", emails, object{}, 400, "invalid_request", "payload"},
		"a delay and a due time": {"POST", emails,
			object{"payload": 1, "delay_ms": 1, "run_at": "2030-01-01T00:00:00Z"}, 400, "invalid_request", "run_at"},
		"a delay over ten years": {"POST", emails, object{"payload": 1, "delay_ms": 400 * 86_400_000 * 10},
			400, "invalid_request", "delay_ms"},
		"an invalid time": {"POST", emails, object{"payload": 1, "run_at": "tomorrow"}, 400,
			"invalid_request", "run_at"},
		"101 attempts": {"POST", emails, object{"payload": 1, "max_attempts": 101}, 400,
			"invalid_request", "max_attempts"},
		"nine headers": {"POST", emails,
			object{"payload": 1, "headers": object{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "f": "1", "g": "1",
				"h": "1", "i": "1"}}, 400, "invalid_request", "headers"},
		"a header with the reserved prefix": {"POST", emails, object{"payload": 1, "headers": object{"sluice-x": "1"}},
			400, "invalid_request", "headers.sluice-x"},
		"a group on a standard queue": {"POST", emails, object{"payload": 1, "group": "g"}, 400, "invalid_request",
			"group"},
		"an unknown durability": {"POST", emails, object{"payload": 1, "durability": "paper"}, 400,
			"invalid_request", "durability"},
		"an id with a slash": {"POST", emails, object{"payload": 1, "id": "a/b"}, 400, "invalid_request",
			"id"},
		"a payload over 256 KiB": {"POST", emails, object{"payload": strings.Repeat("x", 256<<10)}, 413,
			"payload_too_large", ""},
		"a queue that is not listed": {"POST", "/v1/queues/secret/jobs", object{"payload": 1}, 404,
			"queue_not_found", ""},
		"an empty batch": {"POST", emails + "/batch", object{"jobs": []object{}}, 400,
			"invalid_request", "jobs"},
		"a page of 201 jobs":         {"GET", emails + "?limit=201", nil, 400, "invalid_request", "limit"},
		"an invalid cursor":          {"GET", emails + "?cursor=zzz", nil, 400, "invalid_request", "cursor"},
		"an unknown state":           {"GET", emails + "?state=lost", nil, 400, "invalid_request", "state"},
		"an unknown query parameter": {"GET", emails + "?page=2", nil, 400, "invalid_request", "page"},
		"an ack without an attempt":  {"POST", emails + "/x/ack", object{}, 400, "invalid_request", "attempt"},
		"an empty change":            {"PATCH", emails + "/x", object{}, 400, "invalid_request", "body"},
		"an id and another Idempotency-Key": {"POST", emails, object{"payload": 1, "id": "one"}, 400, "invalid_request",
			"Idempotency-Key"},
		"a backoff that shrinks": {"POST", emails, object{"payload": 1, "backoff": object{"multiplier": 0.5}},
			400, "invalid_request", "backoff.multiplier"},
		"an unsupported media type":       {"POST", emails, "payload=1", 415, "unsupported_media_type", ""},
		"an unsupported method":           {"PUT", emails, object{}, 405, "method_not_allowed", ""},
		"an unknown path below the queue": {"GET", "/v1/queues/emails/nothing", nil, 404, "not_found", ""},
		"an unknown path":                 {"GET", "/v2/everything", nil, 404, "not_found", ""},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			var headers []string
			if tc.field == "Idempotency-Key" {
				headers = []string{"Idempotency-Key", "two"}
			}
			if tc.status == 415 {
				headers = []string{"Content-Type", "application/x-www-form-urlencoded"}
			}
			a := want(t, tc.status, tc.method, tc.path, tc.body, headers...)
			require.Equal(t, tc.code, a.string("code"))
			if tc.status == 405 {
				require.NotEmpty(t, a.header.Get("Allow"))
			}
			if tc.field != "" {
				require.Equal(t, tc.field, a.body["errors"].([]any)[0].(object)["field"])
			}
		})
	}
}
