package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/consumer"
)

// fakeQueue is an in-memory SQS queue on the clock of testing/synctest. It can inject failures,
// which the SQS emulator kumo cannot. The tests in localstack/e2e/goclient use kumo.
type fakeQueue struct {
	fifo bool
	fail func(operation string) error

	mu       sync.Mutex
	messages []*fakeMessage
	requests map[string]int
	receipts int
}

type fakeMessage struct {
	id, group, body, receipt string
	attributes               map[string]string
	visibleAt                time.Time
	receives                 int
}

func (q *fakeQueue) begin(operation string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.requests == nil {
		q.requests = make(map[string]int)
	}
	q.requests[operation]++
	if q.fail != nil {
		return q.fail(operation)
	}
	return nil
}

// inject sets the function that returns the error of each further request. Nil means no errors.
func (q *fakeQueue) inject(fail func(string) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail = fail
}

func (q *fakeQueue) send(id, group string, attributes map[string]string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, &fakeMessage{id: id, group: group, body: `{"id":"` + id + `"}`,
		attributes: attributes})
}

func (q *fakeQueue) left() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := []string{}
	for _, m := range q.messages {
		ids = append(ids, m.id)
	}
	return ids
}

// visible returns the time until a message can be received.
func (q *fakeQueue) visible(id string) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		if m.id == id {
			return time.Until(m.visibleAt)
		}
	}
	return -1
}

func (q *fakeQueue) count(operation string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.requests[operation]
}

func (q *fakeQueue) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput,
	_ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := q.begin("receive"); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second); ; {
		if found := q.take(in); len(found) > 0 || !time.Now().Before(end) {
			return &sqs.ReceiveMessageOutput{Messages: found}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (q *fakeQueue) take(in *sqs.ReceiveMessageInput) []types.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []types.Message
	blocked := make(map[string]bool)
	for _, m := range q.messages {
		if m.visibleAt.After(time.Now()) {
			blocked[m.group] = q.fifo
		}
	}
	for _, m := range q.messages {
		if len(out) == int(in.MaxNumberOfMessages) || m.visibleAt.After(time.Now()) || blocked[m.group] {
			continue
		}
		q.receipts++
		m.receipt, m.visibleAt = fmt.Sprintf("%s/%d", m.id, q.receipts),
			time.Now().Add(time.Duration(in.VisibilityTimeout)*time.Second)
		m.receives++
		message := types.Message{
			MessageId: aws.String(m.id), Body: aws.String(m.body), ReceiptHandle: aws.String(m.receipt),
			MessageAttributes: map[string]types.MessageAttributeValue{},
			Attributes: map[string]string{"MessageGroupId": m.group,
				"ApproximateReceiveCount": fmt.Sprint(m.receives)},
		}
		for name, value := range m.attributes {
			message.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"),
				StringValue: aws.String(value)}
		}
		out = append(out, message)
	}
	return out
}

func (q *fakeQueue) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput,
	_ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if err := q.begin("delete"); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	out := &sqs.DeleteMessageBatchOutput{}
	for _, entry := range in.Entries {
		for i, m := range q.messages {
			if m.receipt == aws.ToString(entry.ReceiptHandle) {
				q.messages = append(q.messages[:i], q.messages[i+1:]...)
				out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: entry.Id})
				break
			}
		}
	}
	return out, nil
}

func (q *fakeQueue) ChangeMessageVisibilityBatch(
	_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := q.begin("change"); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, entry := range in.Entries {
		for _, m := range q.messages {
			if m.receipt == aws.ToString(entry.ReceiptHandle) &&
				(m.visibleAt.After(time.Now()) || entry.VisibilityTimeout == 0) {
				m.visibleAt = time.Now().Add(time.Duration(entry.VisibilityTimeout) * time.Second)
				out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: entry.Id})
			}
		}
	}
	return out, nil
}

// fakeJobs is a fake of the ack and nack endpoints of the API. It records a call as text: "ack
// order-42 1" is the acknowledgement of attempt 1 of the job "order-42".
type fakeJobs struct {
	answers map[string]string // "ack a" -> a problem document, or "unreachable"; default 200

	mu    sync.Mutex
	calls []string
}

func (f *fakeJobs) RoundTrip(r *http.Request) (*http.Response, error) {
	segments := strings.Split(r.URL.Path, "/") // "", v1, queues, orders, jobs, id, action
	text, _ := io.ReadAll(r.Body)
	var body struct {
		Attempt int    `json:"attempt"`
		Error   string `json:"error"`
		Delay   *int64 `json:"delay_ms"`
	}
	_ = json.Unmarshal(text, &body)
	call := segments[6] + " " + segments[5] + " " + fmt.Sprint(body.Attempt)
	if body.Error != "" {
		call += " " + body.Error
	}
	if body.Delay != nil {
		call += fmt.Sprintf(" in %d ms", *body.Delay)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	out := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader("{}"))}
	switch answer := f.answers[segments[6]+" "+segments[5]]; answer {
	case "":
	case "unreachable":
		return nil, io.ErrUnexpectedEOF
	default:
		out.StatusCode = http.StatusConflict
		out.Header.Set("Content-Type", "application/problem+json")
		out.Body = io.NopCloser(strings.NewReader(answer))
	}
	return out, nil
}

func (f *fakeJobs) made() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.calls...)
}

func conflict(state client.JobState, attempt int) string {
	return fmt.Sprintf(`{"code":"job_conflict","status":409,"state":%q,"attempt":%d}`, state, attempt)
}

func (f *fakeJobs) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Endpoint: "http://sluice.test", Auth: client.AuthNone, Retries: -1,
		HTTPClient: &http.Client{Transport: f}})
	require.NoError(t, err)
	return c
}

// job returns the attributes of an attempt, as the dispatcher sends them.
func job(id string, attempt int) map[string]string {
	return map[string]string{"sluice-job-id": id, "sluice-queue": "orders", "sluice-attempt": fmt.Sprint(attempt),
		"sluice-run-at": "1767323045678"}
}

func newConsumer(t *testing.T, cfg consumer.Config) *consumer.Consumer {
	t.Helper()
	c, err := consumer.New(cfg)
	require.NoError(t, err)
	return c
}
