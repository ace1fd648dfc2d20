package outbox

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
)

// pausePK is the partition key of all pauses; the sort key is the queue's name.
const pausePK = "pause"

// SetPause stores that a queue is paused until the given time. If until is the zero time, only
// ClearPause ends the pause. Errors: store_unavailable.
func (o *Outbox) SetPause(ctx context.Context, queue string, until time.Time) error {
	item := keyOf(pausePK, queue)
	item["until"] = millis(until)
	if !until.IsZero() {
		item["ttl"] = expiry(until)
	}
	if _, err := o.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: o.name(), Item: item}); err != nil {
		return fault.Unavailable("dynamodb", err)
	}
	return nil
}

// ClearPause deletes the pause of a queue. Errors: store_unavailable.
func (o *Outbox) ClearPause(ctx context.Context, queue string) error {
	if _, err := o.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: o.name(), Key: keyOf(pausePK, queue),
	}); err != nil {
		return fault.Unavailable("dynamodb", err)
	}
	return nil
}

// Pause reads the pause of a queue. Errors: store_unavailable.
func (o *Outbox) Pause(ctx context.Context, queue string) (delayqueue.Pause, error) {
	raw, err := o.get(ctx, keyOf(pausePK, queue))
	if err != nil {
		return delayqueue.Pause{}, err
	}
	return o.pauseOf(raw), nil
}

// Pauses reads the pauses of all queues that are paused now, by queue name. Errors:
// store_unavailable.
func (o *Outbox) Pauses(ctx context.Context) (map[string]delayqueue.Pause, error) {
	pauses := make(map[string]delayqueue.Pause)
	in := &dynamodb.QueryInput{
		TableName: o.name(), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": str(pausePK)},
	}
	for {
		out, err := o.client.Query(ctx, in)
		if err != nil {
			return nil, fault.Unavailable("dynamodb", err)
		}
		for _, raw := range out.Items {
			if pause := o.pauseOf(raw); pause.Paused {
				pauses[text(raw["sk"])] = pause
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
			return pauses, nil
		}
	}
}

// pauseOf decodes a pause item. It returns the zero Pause if there is no item or the pause has
// ended.
func (o *Outbox) pauseOf(raw map[string]types.AttributeValue) delayqueue.Pause {
	until := moment(raw["until"])
	if len(raw) == 0 || !until.IsZero() && !until.After(o.now()) {
		return delayqueue.Pause{}
	}
	return delayqueue.Pause{Paused: true, Until: until}
}
