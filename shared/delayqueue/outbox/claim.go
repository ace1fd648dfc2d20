package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/fault"
)

// Claim takes an item for lease, and reports false when somebody else has it.
func (o *Outbox) Claim(ctx context.Context, item *Item, lease time.Duration) (bool, error) {
	until := o.now().Add(lease).UnixMilli()
	ok, err := o.update(ctx, item, "SET lease = :lease, fence = :next", "#s = :waiting AND fence = :fence", map[string]types.AttributeValue{
		":lease": num(until), ":next": num(item.fence + 1), ":fence": num(item.fence), ":waiting": str(waiting),
	})
	if ok {
		item.fence, item.lease = item.fence+1, until
	}
	return ok, err
}

// MarkSent notes that a claimed item's job was sent. It stays, so that Redis can be told of it when it is back.
func (o *Outbox) MarkSent(ctx context.Context, item *Item) (bool, error) {
	return o.update(ctx, item, "SET #s = :sent, sent_at = :at", "fence = :fence AND #s = :waiting", map[string]types.AttributeValue{
		":sent": str(sent), ":at": num(o.now().UnixMilli()), ":fence": num(item.fence), ":waiting": str(waiting),
	})
}

// Return ends a claim; nobody takes the item before delay has passed.
func (o *Outbox) Return(ctx context.Context, item *Item, delay time.Duration) (bool, error) {
	return o.update(ctx, item, "SET lease = :lease", "fence = :fence AND #s = :waiting", map[string]types.AttributeValue{
		":lease": num(o.now().Add(delay).UnixMilli()), ":fence": num(item.fence), ":waiting": str(waiting),
	})
}

func (o *Outbox) update(ctx context.Context, item *Item, set, when string, values map[string]types.AttributeValue) (bool, error) {
	_, err := o.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(o.table), Key: map[string]types.AttributeValue{"pk": str(item.pk), "sk": str(item.sk)},
		UpdateExpression: aws.String(set), ConditionExpression: aws.String(when),
		ExpressionAttributeNames: map[string]string{"#s": "state"}, ExpressionAttributeValues: values,
	})
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		return false, nil
	case err != nil:
		return false, fault.Unavailable("dynamodb", err)
	}
	return true, nil
}

// Remove forgets an item whose job is in Redis' care, or done. The item under the due time goes first: what is left of a broken removal only keeps the id.
func (o *Outbox) Remove(ctx context.Context, item *Item) error {
	for _, key := range []map[string]types.AttributeValue{
		{"pk": str(item.pk), "sk": str(item.sk)}, {"pk": str(idKey(item.Queue, item.Job.ID)), "sk": str("id")},
	} {
		if _, err := o.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(o.table), Key: key}); err != nil {
			return fault.Unavailable("dynamodb", err)
		}
	}
	return nil
}

// RemoveID forgets the durable item of a job that was sent from Redis.
func (o *Outbox) RemoveID(ctx context.Context, queue, id string) error {
	key := map[string]types.AttributeValue{"pk": str(idKey(queue, id)), "sk": str("id")}
	out, err := o.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(o.table), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return fault.Unavailable("dynamodb", err)
	}
	if len(out.Item) == 0 {
		return nil
	}
	item := Item{Queue: queue, pk: text(out.Item["due_pk"]), sk: text(out.Item["due_sk"])}
	item.Job.ID = id
	return o.Remove(ctx, &item)
}

// Free tells whether nobody holds the item at an instant.
func (i *Item) Free(at time.Time) bool { return i.lease <= at.UnixMilli() }
