package sqssender

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/internal/sqstext"
)

// message returns the SQS message of a job and the size of the message in bytes, as SQS counts it.
// If the message can never be sent, the result why is the reason.
func message(queue string, j *delayqueue.Claimed) (entry types.SendMessageBatchRequestEntry, size int, why string) {
	body := string(j.Payload)
	if !sqstext.Text(body) {
		return entry, 0, "the payload has a character that SQS does not accept"
	}
	attributes := map[string]types.MessageAttributeValue{
		"sluice-job-id":  value(j.ID),
		"sluice-queue":   value(queue),
		"sluice-attempt": value(strconv.Itoa(j.Attempt)),
		"sluice-run-at":  value(strconv.FormatInt(j.RunAt.UnixMilli(), 10)),
	}
	if why := addHeaders(attributes, j.Headers); why != "" {
		return entry, 0, why
	}
	// The trace context is optional: it is added only if the message has fewer than ten attributes.
	if _, taken := attributes["traceparent"]; j.Trace != "" && !taken && len(attributes) < maxAttributes {
		attributes["traceparent"] = value(j.Trace)
	}
	size = len(body)
	for name, v := range attributes {
		size += len(name) + len(aws.ToString(v.DataType)) + len(aws.ToString(v.StringValue))
	}
	if size > maxBatchBytes {
		return entry, 0, "the message is larger than SQS accepts"
	}
	return types.SendMessageBatchRequestEntry{MessageBody: aws.String(body), MessageAttributes: attributes}, size, ""
}

// overflowAttribute is the attribute for the headers that do not fit into attributes of their own.
// It contains them as a JSON object. SQS accepts ten attributes, Sluice uses four of them, and a
// job may have eight headers.
const overflowAttribute = "sluice-headers"

func addHeaders(attributes map[string]types.MessageAttributeValue, headers map[string]string) (why string) {
	names := slices.Sorted(maps.Keys(headers))
	for _, name := range names {
		// One invalid message makes SQS reject the whole batch, including the other jobs.
		if !sqstext.Name(name) || sqstext.Reserved(name) {
			return "the header " + strconv.Quote(name) + " has a name that SQS does not accept"
		}
		if !sqstext.Text(headers[name]) {
			return "the header " + name + " has a value that SQS does not accept"
		}
	}
	room := maxAttributes - len(attributes)
	rest := make(map[string]string)
	if len(names) > room {
		for _, name := range names[room-1:] {
			rest[name] = headers[name]
		}
		names = names[:room-1]
	}
	for _, name := range names {
		attributes[name] = value(headers[name])
	}
	if len(rest) > 0 {
		encoded, err := json.Marshal(rest)
		if err != nil {
			return "the headers cannot be encoded as JSON"
		}
		attributes[overflowAttribute] = value(string(encoded))
	}
	return ""
}

func value(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(s)}
}
