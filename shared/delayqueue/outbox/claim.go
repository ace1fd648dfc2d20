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

// unchanged is the condition of every write: the item has not been written since it was read.
const unchanged = "fence = :fence"

// ClaimToSend claims an item before the caller sends its job to SQS. No other process can claim the
// item before the lease ends. Errors: [ErrClaimLost], store_unavailable.
func (o *Outbox) ClaimToSend(ctx context.Context, item *Item, lease time.Duration) error {
	return o.claim(ctx, item, Sending, lease)
}

// ClaimToMove claims an item before the caller moves its job to Redis, changes it or cancels it. It
// takes over an earlier claim to move. Errors: [ErrClaimLost], also if the job was sent or another
// process may be sending it; store_unavailable.
func (o *Outbox) ClaimToMove(ctx context.Context, item *Item, lease time.Duration) error {
	return o.claim(ctx, item, Waiting, lease)
}

func (o *Outbox) claim(ctx context.Context, item *Item, state State, lease time.Duration) error {
	if item.State == Sent || item.BeingSent(o.now()) {
		return ErrClaimLost
	}
	return o.update(ctx, item, state, lease)
}

// Release ends a claim. Dispatchers do not claim the item before the delay has passed. Errors:
// [ErrClaimLost], store_unavailable.
func (o *Outbox) Release(ctx context.Context, item *Item, delay time.Duration) error {
	return o.update(ctx, item, Waiting, delay)
}

func (o *Outbox) update(ctx context.Context, item *Item, state State, lease time.Duration) error {
	until := o.now().Add(lease)
	_, err := o.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: o.name(), Key: item.key(),
		UpdateExpression:         aws.String("SET #state = :state, #lease = :until, fence = :next"),
		ConditionExpression:      aws.String(unchanged),
		ExpressionAttributeNames: map[string]string{"#state": "state", "#lease": "lease"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":state": str(string(state)), ":until": millis(until),
			":fence": num(item.fence), ":next": num(item.fence + 1),
		},
	})
	if err := writeError(err); err != nil {
		return err
	}
	item.State, item.leasedUntil, item.fence = state, until, item.fence+1
	return nil
}

// writeError converts the error of a conditional write to [ErrClaimLost] or store_unavailable.
func writeError(err error) error {
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused), canceled(err):
		return ErrClaimLost
	default:
		return fault.Unavailable("dynamodb", err)
	}
}

// MarkSent records that SQS accepted the job of a claimed item. It moves the item to the partitions
// of sent jobs, where it stays until Redis has recorded the outcome. Errors: [ErrClaimLost],
// store_unavailable.
func (o *Outbox) MarkSent(ctx context.Context, item *Item) error {
	sent := *item
	sent.State, sent.SentAt, sent.leasedUntil = Sent, o.now(), time.Time{}
	sent.pk = sentPrefix + bucketOf(item.Job.ID)
	return o.refile(ctx, item, sent)
}

// Change sets a new due time for the job of a claimed item. If payload is not nil, it also replaces
// the payload. It ends the claim. Errors: [ErrClaimLost], store_unavailable.
func (o *Outbox) Change(ctx context.Context, item *Item, runAt time.Time, payload json.RawMessage) error {
	changed := *item
	changed.State, changed.leasedUntil = Waiting, time.Time{}
	changed.Job.RunAt = runAt
	if payload != nil {
		changed.Job.Payload = payload
	}
	changed.pk, changed.sk = jobKey(item.Queue, &changed.Job, item.Durable)
	return o.refile(ctx, item, changed)
}

// refile replaces an item with its next version, which may have a different key, and updates the
// pointer item.
func (o *Outbox) refile(ctx context.Context, item *Item, next Item) error {
	next.fence = item.fence + 1
	ttl := expiry(later(next.Job.RunAt, o.now()))
	values := map[string]types.AttributeValue{
		"pk": str(next.pk), "sk": str(next.sk), "queue": str(next.Queue), "state": str(string(next.State)),
		"lease": millis(next.leasedUntil), "fence": num(next.fence), "ttl": ttl,
	}
	if next.State == Sent {
		values["sent_at"] = millis(next.SentAt)
	}
	if err := encode(&next.Job, values); err != nil {
		return err
	}

	fence := map[string]types.AttributeValue{":fence": num(item.fence)}
	put := &types.Put{TableName: o.name(), Item: values}
	writes := []types.TransactWriteItem{{Put: put}, {Update: &types.Update{
		TableName: o.name(), Key: pointerKey(item.Queue, item.Job.ID),
		UpdateExpression:         aws.String("SET item_pk = :next_pk, item_sk = :next_sk, #ttl = :ttl"),
		ConditionExpression:      aws.String("item_pk = :pk AND item_sk = :sk"),
		ExpressionAttributeNames: map[string]string{"#ttl": "ttl"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": str(item.pk), ":sk": str(item.sk), ":next_pk": str(next.pk), ":next_sk": str(next.sk), ":ttl": ttl,
		},
	}}}
	if next.pk == item.pk && next.sk == item.sk {
		put.ConditionExpression, put.ExpressionAttributeValues = aws.String(unchanged), fence
	} else {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
			TableName: o.name(), Key: item.key(),
			ConditionExpression: aws.String(unchanged), ExpressionAttributeValues: fence,
		}})
	}

	_, err := o.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	if err := writeError(err); err != nil {
		return err
	}
	*item = next
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Remove deletes a claimed or sent item. It succeeds if the item no longer exists. It deletes the
// job item before the pointer item. An interrupted removal therefore leaves a pointer to a missing
// item, which Put and Find detect. Errors: [ErrClaimLost], store_unavailable.
func (o *Outbox) Remove(ctx context.Context, item *Item) error {
	_, err := o.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: o.name(), Key: item.key(),
		ConditionExpression:       aws.String("attribute_not_exists(pk) OR " + unchanged),
		ExpressionAttributeValues: map[string]types.AttributeValue{":fence": num(item.fence)},
	})
	if err := writeError(err); err != nil {
		return err
	}
	return o.removePointer(ctx, item.Queue, item.Job.ID, item.key())
}

// removePointer deletes the pointer item of a job. If the pointer item holds a key other than
// target, removePointer changes nothing and returns [ErrClaimLost].
func (o *Outbox) removePointer(ctx context.Context, queue, id string, target key) error {
	_, err := o.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: o.name(), Key: pointerKey(queue, id),
		ConditionExpression: aws.String("attribute_not_exists(pk) OR (item_pk = :pk AND item_sk = :sk)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": target["pk"], ":sk": target["sk"],
		},
	})
	return writeError(err)
}

// RemoveID deletes the item of a job that SQS has accepted, even if another process has claimed it.
// It succeeds if the job has no item. Errors: store_unavailable.
func (o *Outbox) RemoveID(ctx context.Context, queue, id string) error {
	for range maxRaces {
		pointer, err := o.get(ctx, pointerKey(queue, id))
		if err != nil || len(pointer) == 0 {
			return err
		}
		target := key{"pk": pointer["item_pk"], "sk": pointer["item_sk"]}
		if _, err := o.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: o.name(), Key: target}); err != nil {
			return fault.Unavailable("dynamodb", err)
		}
		if err := o.removePointer(ctx, queue, id, target); !errors.Is(err, ErrClaimLost) {
			return err
		}
	}
	return tooManyRaces()
}
