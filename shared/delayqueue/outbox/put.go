package outbox

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
)

// maxRaces is the maximum number of tries if other processes change the job during a call.
const maxRaces = 4

// PutOptions are the options of Put.
type PutOptions struct {
	// Durable keeps the item, next to the job in Redis, until the job is sent.
	Durable bool
	// Hold is the time for which dispatchers do not claim the item. The caller uses this time to
	// write the job to Redis itself.
	Hold time.Duration
}

// Put adds a job. If its ID already exists in the queue, Put changes nothing and returns the
// existing job as a duplicate. A job with a Delay is due at now + Delay, by this machine's clock.
// Errors: store_unavailable.
func (o *Outbox) Put(ctx context.Context, queue string, j delayqueue.Job,
	options PutOptions) (delayqueue.Enqueued, error) {
	now := o.now()
	j.RunAt, j.Delay, j.Durable = dueAt(&j, now), 0, false
	pk, sk := jobKey(queue, &j, options.Durable)
	item := map[string]types.AttributeValue{
		"pk": str(pk), "sk": str(sk), "queue": str(queue), "state": str(string(Waiting)),
		"lease": millis(now.Add(options.Hold)), "fence": num(0), "ttl": expiry(j.RunAt),
	}
	if err := encode(&j, item); err != nil {
		return delayqueue.Enqueued{}, err
	}

	pointer := pointerKey(queue, j.ID)
	pointer["item_pk"], pointer["item_sk"], pointer["ttl"] = str(pk), str(sk), item["ttl"]
	put := &types.Put{
		TableName: o.name(), Item: pointer,
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}
	for range maxRaces {
		_, err := o.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: put}, {Put: &types.Put{TableName: o.name(), Item: item}}},
		})
		if err == nil {
			return delayqueue.Enqueued{
				ID: j.ID, State: delayqueue.Scheduled, RunAt: j.RunAt, Durable: options.Durable,
			}, nil
		}
		if !canceled(err) {
			return delayqueue.Enqueued{}, fault.Unavailable("dynamodb", err)
		}

		found, err := o.lookUp(ctx, queue, j.ID)
		if err != nil {
			return delayqueue.Enqueued{}, err
		}
		if found.item != nil {
			return duplicate(&j, found.item), nil
		}
		if found.pointer != nil {
			replaceBrokenPointer(put, found.pointer)
		}
	}
	return delayqueue.Enqueued{}, tooManyRaces()
}

// replaceBrokenPointer changes put, the write of a new pointer item, so that it may replace a
// pointer item that holds the key broken. No job item has this key: a removal was interrupted after
// it had deleted the job item and before it deleted the pointer item.
func replaceBrokenPointer(put *types.Put, broken key) {
	put.ConditionExpression = aws.String(
		"attribute_not_exists(pk) OR (item_pk = :broken_pk AND item_sk = :broken_sk)")
	put.ExpressionAttributeValues = map[string]types.AttributeValue{
		":broken_pk": broken["pk"], ":broken_sk": broken["sk"],
	}
}

// dueAt returns the due time of a new job, rounded up to a whole millisecond. A time in the past
// becomes now.
func dueAt(j *delayqueue.Job, now time.Time) time.Time {
	at := j.RunAt
	if at.IsZero() {
		at = now.Add(j.Delay)
	}
	if at.Before(now) {
		at = now
	}
	return ceil(at)
}

// duplicate returns the result of Put for a job j whose ID already exists.
func duplicate(j *delayqueue.Job, existing *Item) delayqueue.Enqueued {
	state, attempt := existing.JobState()
	return delayqueue.Enqueued{
		ID: j.ID, State: state, RunAt: existing.Job.RunAt, Attempt: attempt, Duplicate: true,
		Differs: !sameContent(j, &existing.Job), Durable: existing.Durable,
	}
}

// JobState returns the state and the attempt of the job as the HTTP API reports them.
func (i *Item) JobState() (state delayqueue.State, attempt int) {
	switch {
	case i.State == Waiting:
		return delayqueue.Scheduled, 0
	case i.State == Sending:
		return delayqueue.Dispatching, 1
	case i.Job.MaxAttempts > 1:
		return delayqueue.AwaitingAck, 1
	default:
		return delayqueue.Dispatched, 1
	}
}

func sameContent(a, b *delayqueue.Job) bool {
	return string(a.Payload) == string(b.Payload) && a.Group == b.Group && maps.Equal(a.Headers, b.Headers)
}

// canceled reports whether a transaction failed because a condition was false or another write ran
// concurrently.
func canceled(err error) bool {
	var c *types.TransactionCanceledException
	return errors.As(err, &c)
}

func tooManyRaces() error {
	return fault.Unavailable("dynamodb", errors.New("other processes keep changing the outbox item"))
}
