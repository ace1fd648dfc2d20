package sqssender

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func headers(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("h%d", i)] = fmt.Sprintf("v%d", i)
	}
	return out
}

func TestMessage(t *testing.T) {
	t.Run("has the payload, the headers and the attributes of the job", func(t *testing.T) {
		f := &fakeSQS{}
		j := job("a")
		j.Attempt, j.Payload, j.Headers, j.Trace = 3, json.RawMessage(`{ "exact" : "text" }`),
			map[string]string{"tenant": "t1"}, trace
		send(t, f, plainURL, j)
		e := f.entries()[0]
		require.Equal(t, `{ "exact" : "text" }`, aws.ToString(e.MessageBody))
		got := map[string]string{}
		for name, v := range e.MessageAttributes {
			require.Equal(t, "String", aws.ToString(v.DataType))
			got[name] = aws.ToString(v.StringValue)
		}
		require.Equal(t, map[string]string{
			"sluice-job-id": "a", "sluice-queue": queue, "sluice-attempt": "3", "sluice-run-at": "1750000000000",
			"tenant": "t1", "traceparent": trace,
		}, got)
	})

	t.Run("has at most ten attributes and loses no header", func(t *testing.T) {
		for n := range delayqueue.MaxHeaders + 1 {
			for _, traced := range []string{"", trace} {
				t.Run(fmt.Sprintf("%d headers, trace %q", n, traced), func(t *testing.T) {
					f := &fakeSQS{}
					j := job("a")
					j.Headers, j.Trace = headers(n), traced
					require.Equal(t, Accepted, send(t, f, plainURL, j)[0].Outcome)
					e := f.entries()[0]
					require.LessOrEqual(t, len(e.MessageAttributes), 10)

					got := map[string]string{}
					if text := attribute(&e, "sluice-headers"); text != "" {
						require.Greater(t, n, 6, "sluice-headers exists only if the headers do not fit")
						require.NoError(t, json.Unmarshal([]byte(text), &got))
					}
					for name := range j.Headers {
						if v := attribute(&e, name); v != "" {
							got[name] = v
						}
					}
					require.Equal(t, headers(n), got)
					if traced != "" && n <= 5 {
						require.Equal(t, trace, attribute(&e, "traceparent"))
					}
				})
			}
		}
	})

	t.Run("a traceparent header of the job replaces the trace", func(t *testing.T) {
		f := &fakeSQS{}
		j := job("a")
		j.Headers, j.Trace = map[string]string{"traceparent": "mine"}, trace
		send(t, f, plainURL, j)
		e := f.entries()[0]
		require.Equal(t, "mine", attribute(&e, "traceparent"))
	})

	t.Run("a job that SQS can never accept is poison and does not block other jobs", func(t *testing.T) {
		for name, c := range map[string]struct {
			headers map[string]string
			payload string
			reason  string
		}{
			"a name with a space":              {map[string]string{"a b": "v"}, `1`, "name"},
			"an empty name":                    {map[string]string{"": "v"}, `1`, "name"},
			"a name that is too long":          {map[string]string{strings.Repeat("n", 257): "v"}, `1`, "name"},
			"a name with the prefix AWS":       {map[string]string{"AWS.trace": "v"}, `1`, "name"},
			"a name with the prefix sluice":    {map[string]string{"sluice-job-id": "other"}, `1`, "name"},
			"an empty value":                   {map[string]string{"a": ""}, `1`, "value"},
			"a value with a control character": {map[string]string{"a": "\x01"}, `1`, "value"},
			"a bad value in sluice-headers": {map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1",
				"f": "1",
				"g": "\uFFFE"}, `1`, "value"},
			"a payload with U+FFFF":       {nil, "\"\uFFFF\"", "payload"},
			"a payload that is not UTF-8": {nil, "\"\xff\"", "payload"},
			"no payload":                  {nil, "", "payload"},
		} {
			t.Run(name, func(t *testing.T) {
				f := &fakeSQS{}
				bad := job("bad")
				bad.Headers, bad.Payload = c.headers, json.RawMessage(c.payload)
				results := send(t, f, plainURL, job("before"), bad, job("after"))
				require.Equal(t, Poison, results[1].Outcome)
				require.Contains(t, results[1].Reason, c.reason)
				require.Equal(t, [][]string{{"before", "after"}}, f.sent())
				require.Equal(t, []Outcome{Accepted, Accepted}, []Outcome{results[0].Outcome, results[2].Outcome})
			})
		}
	})

	// kumo is a local fake of AWS. This test checks that an SQS client can receive the messages.
	t.Run("a consumer receives what was sent", func(t *testing.T) {
		local := awstest.Start(t)
		url := local.CreateQueue(t, redistest.Name("sent"), nil)
		j := job("a")
		j.Headers, j.Trace = headers(delayqueue.MaxHeaders), trace
		require.Equal(t, []Result{{Outcome: Accepted}},
			New(local.SQS, 1).Send(t.Context(), queue, url, []delayqueue.Claimed{j}))
		out, err := local.SQS.ReceiveMessage(t.Context(),
			&sqs.ReceiveMessageInput{QueueUrl: &url, MessageAttributeNames: []string{"All"}, WaitTimeSeconds: 5})
		require.NoError(t, err)
		require.Len(t, out.Messages, 1)
		require.JSONEq(t, string(j.Payload), aws.ToString(out.Messages[0].Body))
		require.Equal(t, "a", aws.ToString(out.Messages[0].MessageAttributes["sluice-job-id"].StringValue))
		require.JSONEq(t, `{"h5":"v5","h6":"v6","h7":"v7"}`,
			aws.ToString(out.Messages[0].MessageAttributes["sluice-headers"].StringValue))
	})
}
