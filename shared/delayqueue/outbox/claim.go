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

// unchanged is the condition of every write: nobody has written the item since it was read.
const unchanged = "fence = :fence"

// ClaimToSend claims an item for the process that is about to send its job to SQS. Nobody else can
// claim it before the lease ends. Errors: [ErrClaimLost], store_unavailable.
func (o *Outbox) ClaimToSend(ctx context.Context, item *Item, lease time.Duration) error {
	return o.claim(ctx, item, Sending, lease)
}

// ClaimToMove claims an item for a process that is about to write its job, or what became of it, to
// Redis. It takes over a claim of another mover. Errors: [ErrClaimLost], also while the job may be
// on its way to SQS; store_unavailable.
func (o *Outbox) ClaimToMove(ctx context.Context, item *Item, lease time.Duration) error {
	return o.claim(ctx, item, Waiting, lease)
}

func (o *Outbox) claim(ctx context.Context, item *Item, state State, lease time.Duration) error {
	if item.State == Sent || item.BeingSent(o.now()) {
		return ErrClaimLost
	}
	return o.update(ctx, item, state, lease)
}

// Release ends a claim. Dispatchers do not take the item before a delay has passed. Errors:
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

// writeError maps the error of a conditional write.
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

// MarkSent records that SQS accepted the job of a claimed item. The item stays, apart from the
// waiting ones, until Redis has recorded it as well. Errors: [ErrClaimLost], store_unavailable.
func (o *Outbox) MarkSent(ctx context.Context, item *Item) error {
	sent := *item
	sent.State, sent.SentAt, sent.leasedUntil = Sent, o.now(), time.Time{}
	sent.pk = sentPrefix + bucketOf(item.Job.ID)
	return o.refile(ctx, item, sent)
}

// Change gives the job of a claimed item a new due time, and a new payload unless that is nil. It
// ends the claim. Errors: [ErrClaimLost], store_unavailable.
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

// refile replaces an item by another version of it, which may have another key.
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

// Remove deletes a claimed or sent item. An item that no longer exists is no error. The job item
// goes first: an interrupted removal leaves a pointer to nothing, which Put and Find recognize.
// Errors: [ErrClaimLost], store_unavailable.
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

// removePointer deletes the pointer of a job unless it points to another item by now.
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

// RemoveID deletes the item of a job that SQS has accepted, whoever has claimed it. A job without
// an item is no error. Errors: store_unavailable.
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
