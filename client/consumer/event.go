package consumer

// Event is the input of a Lambda function that an SQS queue triggers. Its JSON form is the same as
// events.SQSEvent of github.com/aws/aws-lambda-go, without the fields that this package does not
// use.
type Event struct {
	Records []EventRecord `json:"Records"`
}

// EventRecord is one SQS message of an [Event].
type EventRecord struct {
	MessageID string `json:"messageId"`
	Body      string `json:"body"`
	// Attributes are set by SQS, for example MessageGroupId.
	Attributes map[string]string `json:"attributes"`
	// MessageAttributes are set by the sender.
	MessageAttributes map[string]EventAttribute `json:"messageAttributes"`
	// EventSourceARN is the ARN of the queue.
	EventSourceARN string `json:"eventSourceARN"`
}

// EventAttribute is the value of one message attribute.
type EventAttribute struct {
	StringValue string `json:"stringValue,omitempty"`
	DataType    string `json:"dataType"`
}

// EventResponse is the answer to an [Event]. SQS delivers the listed messages again. AWS Lambda
// deletes all other messages of the event.
type EventResponse struct {
	BatchItemFailures []EventFailure `json:"batchItemFailures"`
}

// EventFailure names a message that was not handled.
type EventFailure struct {
	// ItemIdentifier is the [EventRecord.MessageID] of the message.
	ItemIdentifier string `json:"itemIdentifier"`
}
