package consumer

// Event is the event with which Lambda invokes a function behind an SQS queue. Its JSON form is
// that of events.SQSEvent in github.com/aws/aws-lambda-go, without the fields that are not used
// here.
type Event struct {
	Records []EventRecord `json:"Records"`
}

// EventRecord is one SQS message of an [Event].
type EventRecord struct {
	MessageID string `json:"messageId"`
	Body      string `json:"body"`
	// Attributes are those that SQS adds, for example MessageGroupId.
	Attributes map[string]string `json:"attributes"`
	// MessageAttributes are those that the sender adds.
	MessageAttributes map[string]EventAttribute `json:"messageAttributes"`
	// EventSourceARN is the ARN of the queue.
	EventSourceARN string `json:"eventSourceARN"`
}

// EventAttribute is the value of one message attribute.
type EventAttribute struct {
	StringValue string `json:"stringValue,omitempty"`
	DataType    string `json:"dataType"`
}

// EventResponse is the answer to an [Event]. SQS delivers the listed messages again and deletes the
// others.
type EventResponse struct {
	BatchItemFailures []EventFailure `json:"batchItemFailures"`
}

// EventFailure names a message that was not handled.
type EventFailure struct {
	// ItemIdentifier is its [EventRecord.MessageID].
	ItemIdentifier string `json:"itemIdentifier"`
}
