package consumer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Attributes of a message that Sluice sends.
const (
	attributeJob      = "sluice-job-id"
	attributeQueue    = "sluice-queue"
	attributeAttempt  = "sluice-attempt"
	attributeRunAt    = "sluice-run-at"
	attributeOverflow = "sluice-headers" // a JSON object of the headers for which SQS had no attribute left
)

// Message is one attempt of a job.
type Message struct {
	// JobID, Queue and Attempt name the attempt. A message that did not come from Sluice has none
	// of them, and is never acked.
	JobID   string
	Queue   string
	Attempt int
	// RunAt is when the job was due.
	RunAt time.Time
	// Headers are the job's, and its trace context as "traceparent".
	Headers map[string]string
	// Payload is the job's, as JSON.
	Payload json.RawMessage

	// MessageID is SQS's, and Group its message group on a FIFO queue. Receives is how often SQS
	// has delivered this message, 0 if unknown.
	MessageID string
	Group     string
	Receives  int
}

// Decode reads the payload into v.
func (m *Message) Decode(v any) error {
	if err := json.Unmarshal(m.Payload, v); err != nil {
		return fmt.Errorf("error decoding the payload of the job %q: %w", m.JobID, err)
	}
	return nil
}

// newMessage reads a message's attributes. attribute returns "" for one that is not there; the
// others are headers.
func newMessage(body string, attributes map[string]string) *Message {
	m := &Message{Payload: json.RawMessage(body), Headers: make(map[string]string, len(attributes))}
	for name, value := range attributes {
		if !strings.HasPrefix(name, "sluice-") {
			m.Headers[name] = value
		}
	}
	if overflow := attributes[attributeOverflow]; overflow != "" {
		_ = json.Unmarshal([]byte(overflow), &m.Headers) // adds to the map; Sluice writes nothing else there
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

func fromEvent(e *events.SQSMessage) *Message {
	attributes := make(map[string]string, len(e.MessageAttributes))
	for name, value := range e.MessageAttributes {
		attributes[name] = aws.ToString(value.StringValue)
	}
	m := newMessage(e.Body, attributes)
	m.MessageID = e.MessageId
	m.Group = e.Attributes["MessageGroupId"]
	m.Receives, _ = strconv.Atoi(e.Attributes["ApproximateReceiveCount"])
	return m
}

func fromSQS(in *types.Message) *Message {
	attributes := make(map[string]string, len(in.MessageAttributes))
	for name, value := range in.MessageAttributes {
		attributes[name] = aws.ToString(value.StringValue)
	}
	m := newMessage(aws.ToString(in.Body), attributes)
	m.MessageID = aws.ToString(in.MessageId)
	m.Group = in.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
	m.Receives, _ = strconv.Atoi(in.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	return m
}
