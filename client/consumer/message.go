package consumer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Attributes of a message that Sluice sends.
const (
	attributeJob     = "sluice-job-id"
	attributeQueue   = "sluice-queue"
	attributeAttempt = "sluice-attempt"
	attributeRunAt   = "sluice-run-at"
	// attributeHeaders contains a JSON object of the headers that do not fit into the ten message
	// attributes of SQS.
	attributeHeaders = "sluice-headers"
)

// Message is one attempt of a job.
type Message struct {
	// JobID is the job's ID. It is "" for a message that Sluice did not send. The consumer
	// reports no result of such a message to Sluice.
	JobID string
	// Queue is the name of the job's queue in Sluice.
	Queue string
	// Attempt is the number of the attempt. The first attempt has the number 1.
	Attempt int
	// RunAt is the time at which the attempt was due.
	RunAt time.Time
	// Headers are the job's headers, and its trace context as "traceparent".
	Headers map[string]string
	// Payload is the job's payload, as JSON.
	Payload json.RawMessage

	// MessageID is the ID that SQS assigned.
	MessageID string
	// Group is the message group in a FIFO queue.
	Group string
	// Receives is the number of times that SQS has delivered this message; 0 if unknown.
	Receives int
}

// Decode decodes the payload into v, as json.Unmarshal does.
func (m *Message) Decode(v any) error {
	if err := json.Unmarshal(m.Payload, v); err != nil {
		return fmt.Errorf("error decoding the payload of the job %q: %w", m.JobID, err)
	}
	return nil
}

// newMessage returns the message for a body and message attributes. An attribute is a header if its
// name does not begin with "sluice-".
func newMessage(body string, attributes map[string]string) *Message {
	m := &Message{Payload: json.RawMessage(body), Headers: make(map[string]string, len(attributes))}
	for name, value := range attributes {
		if !strings.HasPrefix(name, "sluice-") {
			m.Headers[name] = value
		}
	}
	if headers := attributes[attributeHeaders]; headers != "" {
		_ = json.Unmarshal([]byte(headers), &m.Headers) // adds to the map
	}

	attempt, err := strconv.Atoi(attributes[attributeAttempt])
	if err != nil || attributes[attributeJob] == "" || attributes[attributeQueue] == "" {
		return m
	}
	m.JobID, m.Queue, m.Attempt = attributes[attributeJob], attributes[attributeQueue], attempt
	if ms, err := strconv.ParseInt(attributes[attributeRunAt], 10, 64); err == nil {
		m.RunAt = time.UnixMilli(ms).UTC()
	}
	return m
}

func fromEvent(e *EventRecord) *Message {
	attributes := make(map[string]string, len(e.MessageAttributes))
	for name, value := range e.MessageAttributes {
		attributes[name] = value.StringValue
	}
	m := newMessage(e.Body, attributes)
	m.MessageID = e.MessageID
	m.setSystemAttributes(e.Attributes)
	return m
}

func fromSQS(in *types.Message) *Message {
	attributes := make(map[string]string, len(in.MessageAttributes))
	for name, value := range in.MessageAttributes {
		attributes[name] = aws.ToString(value.StringValue)
	}
	m := newMessage(aws.ToString(in.Body), attributes)
	m.MessageID = aws.ToString(in.MessageId)
	m.setSystemAttributes(in.Attributes)
	return m
}

func (m *Message) setSystemAttributes(attributes map[string]string) {
	m.Group = attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
	m.Receives, _ = strconv.Atoi(attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
}
