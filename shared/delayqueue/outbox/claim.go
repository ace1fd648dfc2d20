package outbox

import (
	"context"
	"encoding/json"
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
	ok, err := o.update(ctx, item, "SET lease = :lease, fence = :next", "#s = :waiting AND fence = :fence",
		map[string]types.AttributeValue{
			":lease": num(until), ":next": num(item.fence + 1), ":fence": num(item.fence), ":waiting": str(waiting),
		})
	if ok {
		item.fence, item.lease = item.fence+1, until
	}
	return ok, err
}

// MarkSent notes that a claimed item's job was sent. It stays, out of the way of those that wait,
// so that Redis can be told of it when it is back.
func (o *Outbox) MarkSent(ctx context.Context, item *Item) (bool, error) {
	return o.move(ctx, item, sentPrefix+bucketOf(item.Job.ID), item.sk, map[string]types.AttributeValue{
		"state": str(sent), "sent_at": num(o.now().UnixMilli()),
	})
}

// Change moves the durable item of a job to a new time, and gives it a new payload unless that is
// nil. There is nothing to do when it is not here.
func (o *Outbox) Change(ctx context.Context, queue, id string, runAt time.Time, payload json.RawMessage) error {
	item, found, err := o.find(ctx, queue, id)
	if err != nil || !found {
		return err
	}
	item.Job.RunAt = runAt
	if payload != nil {
		item.Job.Payload = payload
	}
	pk, sk := dueKey(queue, item.Job, item.Durable)
	moved, err := o.move(ctx, &item, pk, sk, map[string]types.AttributeValue{"state": str(waiting)})
	if err == nil && !moved {
		err = fault.Unavailable("dynamodb", errors.New("the item was claimed meanwhile"))
	}
	return err
}

// find reads the item of a job that waits here.
func (o *Outbox) find(ctx context.Context, queue, id string) (Item, bool, error) {
	at, err := o.get(ctx, str(idKey(queue, id)), str("id"))
	if err != nil || len(at) == 0 {
		return Item{}, false, err
	}
	return o.at(ctx, at)
}

// at reads the item that the one of a job's id points to.
func (o *Outbox) at(ctx context.Context, at map[string]types.AttributeValue) (Item, bool, error) {
	raw, err := o.get(ctx, at["due_pk"], at["due_sk"])
	if err != nil || len(raw) == 0 {
		return Item{}, false, err
	}
	item, err := decode(raw)
	return item, err == nil, err
}

func (o *Outbox) get(ctx context.Context, pk, sk types.AttributeValue) (map[string]types.AttributeValue, error) {
	out, err := o.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(o.table), Key: map[string]types.AttributeValue{"pk": pk, "sk": sk},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fault.Unavailable("dynamodb", err)
	}
	return out.Item, nil
}

// move puts a waiting item in another place, and reports false when its claim is not this one any
// more.
func (o *Outbox) move(ctx context.Context, item *Item, pk, sk string,
	values map[string]types.AttributeValue) (bool, error) {
	ttl := ttlOf(max(ceilMS(item.Job.RunAt), o.now().UnixMilli()))
	values["pk"], values["sk"], values["queue"], values["ttl"] = str(pk), str(sk), str(item.Queue), ttl
	values["lease"], values["fence"] = num(0), num(item.fence+1)
	if err := encode(&item.Job, values); err != nil {
		return false, err
	}
	held := &types.Put{
		TableName: aws.String(o.table), Item: values,
		ConditionExpression:      aws.String("attribute_not_exists(pk) OR (fence = :fence AND #s = :waiting)"),
		ExpressionAttributeNames: map[string]string{"#s": "state"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":fence": num(item.fence),
			":waiting": str(waiting)},
	}
	writes := []types.TransactWriteItem{
		{Put: held},
		{Update: &types.Update{
			TableName: aws.String(o.table), Key: map[string]types.AttributeValue{"pk": str(idKey(item.Queue,
				item.Job.ID)), "sk": str("id")},
			UpdateExpression: aws.String("SET due_pk = :pk, due_sk = :sk, run_at = :at"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":pk": str(pk), ":sk": str(sk),
				":at": num(ceilMS(item.Job.RunAt))},
		}},
	}
	if pk != item.pk || sk != item.sk {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
			TableName: aws.String(o.table), Key: map[string]types.AttributeValue{"pk": str(item.pk),
				"sk": str(item.sk)},
			ConditionExpression:       aws.String("fence = :fence AND #s = :waiting"),
			ExpressionAttributeNames:  held.ExpressionAttributeNames,
			ExpressionAttributeValues: held.ExpressionAttributeValues,
		}})
	}
	_, err := o.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	var canceled *types.TransactionCanceledException
	switch {
	case errors.As(err, &canceled):
		return false, nil
	case err != nil:
		return false, fault.Unavailable("dynamodb", err)
	}
	item.pk, item.sk, item.fence, item.lease = pk, sk, item.fence+1, 0
	return true, nil
}

// Return ends a claim; nobody takes the item before delay has passed.
func (o *Outbox) Return(ctx context.Context, item *Item, delay time.Duration) (bool, error) {
	return o.update(ctx, item, "SET lease = :lease", "fence = :fence AND #s = :waiting",
		map[string]types.AttributeValue{
			":lease": num(o.now().Add(delay).UnixMilli()), ":fence": num(item.fence), ":waiting": str(waiting),
		})
}

func (o *Outbox) update(ctx context.Context, item *Item, set, when string,
	values map[string]types.AttributeValue) (bool, error) {
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

// Remove forgets an item whose job is in Redis' care, or done. The item under the due time goes
// first: what is left of a broken removal only keeps the id.
func (o *Outbox) Remove(ctx context.Context, item *Item) error {
	for _, key := range []map[string]types.AttributeValue{
		{"pk": str(item.pk), "sk": str(item.sk)}, {"pk": str(idKey(item.Queue, item.Job.ID)), "sk": str("id")},
	} {
		if _, err := o.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(o.table),
			Key: key}); err != nil {
			return fault.Unavailable("dynamodb", err)
		}
	}
	return nil
}

// RemoveID forgets the durable item of a job that was sent from Redis.
func (o *Outbox) RemoveID(ctx context.Context, queue, id string) error {
	at, err := o.get(ctx, str(idKey(queue, id)), str("id"))
	if err != nil || len(at) == 0 {
		return err
	}
	item := Item{Queue: queue, pk: text(at["due_pk"]), sk: text(at["due_sk"])}
	item.Job.ID = id
	return o.Remove(ctx, &item)
}

// Free tells whether nobody holds the item at an instant.
func (i *Item) Free(at time.Time) bool { return i.lease <= at.UnixMilli() }
