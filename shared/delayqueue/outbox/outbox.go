// Package outbox keeps jobs in DynamoDB: those that were taken in while Redis was down, and durable
// ones beside Redis.
//
// Each job has two items: one under its due time, by which dispatchers find it, and one under its
// id, so that no id is taken in twice. A job is sent, or moved to Redis, only by who claimed it;
// the claim has a fence.
package outbox

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
)

const (
	// buckets spread the load over partitions.
	buckets = 4
	// putConcurrency bounds the transactions of one batch at once.
	putConcurrency = 16
	// keep is how long an item outlives its job's due time before DynamoDB's TTL removes it:
	// housekeeping, never a timer.
	keep = 30 * 24 * time.Hour

	// pageSize is how many items one query reads.
	pageSize = 100
	// countPageSize and countPages bound what one Count reads of a bucket.
	countPageSize = 250
	countPages    = 20

	waiting = "pending"
	sent    = "sent"

	// The partition keys of what waits for Redis, of what is durable, and of what was sent and
	// waits for Redis to be told.
	duePrefix     = "due#"
	durablePrefix = "durable#"
	sentPrefix    = "sent#"
)

// Outbox is one table.
type Outbox struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// New makes an Outbox.
func New(client *dynamodb.Client, table string) *Outbox {
	return &Outbox{client: client, table: table, now: time.Now}
}

// TableInput describes the table: partition key "pk", sort key "sk". TTL is on the attribute "ttl".
func TableInput(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	}
}

// Put takes in jobs of one queue, each for itself. A job whose id is known changes nothing and
// comes back as a duplicate. The due time of a job with a delay is by this function's clock.
func (o *Outbox) Put(ctx context.Context, queue string, jobs []delayqueue.Job,
	durable bool) ([]delayqueue.Enqueued, []error) {
	results, errs := make([]delayqueue.Enqueued, len(jobs)), make([]error, len(jobs))
	limit := make(chan struct{}, putConcurrency)
	var wait sync.WaitGroup
	for i := range jobs {
		limit <- struct{}{}
		wait.Go(func() {
			results[i], errs[i] = o.put(ctx, queue, jobs[i], durable)
			<-limit
		})
	}
	wait.Wait()
	return results, errs
}

func (o *Outbox) put(ctx context.Context, queue string, j delayqueue.Job, durable bool) (delayqueue.Enqueued, error) {
	runAtMS := ceilMS(o.now().Add(j.Delay))
	if !j.RunAt.IsZero() {
		runAtMS = max(ceilMS(j.RunAt), runAtMS)
	}
	j.RunAt, j.Delay = time.UnixMilli(runAtMS).UTC(), 0
	pk, sk := dueKey(queue, j, durable)
	ttl := ttlOf(runAtMS)
	item := map[string]types.AttributeValue{
		"pk": str(pk), "sk": str(sk), "queue": str(queue), "state": str(waiting), "lease": num(0), "fence": num(0),
		"ttl": ttl,
	}
	if err := encode(&j, item); err != nil {
		return delayqueue.Enqueued{}, err
	}
	_, err := o.client.TransactWriteItems(ctx,
		&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String(o.table), ConditionExpression: aws.String("attribute_not_exists(pk)"),
				Item: map[string]types.AttributeValue{
					"pk": str(idKey(queue, j.ID)), "sk": str("id"), "due_pk": str(pk), "due_sk": str(sk),
					"run_at": num(runAtMS), "ttl": ttl,
				}}},
			{Put: &types.Put{TableName: aws.String(o.table), Item: item}},
		}})
	var canceled *types.TransactionCanceledException
	switch {
	case errors.As(err, &canceled):
		return o.known(ctx, queue, j)
	case err != nil:
		return delayqueue.Enqueued{}, fault.Unavailable("dynamodb", err)
	}
	return delayqueue.Enqueued{ID: j.ID, State: delayqueue.Scheduled, RunAt: j.RunAt}, nil
}

// known answers for an id that is here already.
func (o *Outbox) known(ctx context.Context, queue string, j delayqueue.Job) (delayqueue.Enqueued, error) {
	at, err := o.get(ctx, str(idKey(queue, j.ID)), str("id"))
	if err != nil {
		return delayqueue.Enqueued{}, err
	}
	if len(at) == 0 {
		return delayqueue.Enqueued{}, fault.Unavailable("dynamodb",
			errors.New("the transaction was canceled, and not by a known id"))
	}
	there, found, err := o.at(ctx, at)
	if err != nil {
		return delayqueue.Enqueued{}, err
	}
	e := delayqueue.Enqueued{ID: j.ID, State: delayqueue.Scheduled, RunAt: moment(at["run_at"]), Duplicate: true}
	if found {
		e.Differs, e.Durable = !sameContent(&j, &there.Job), there.Durable
	}
	if there.Sent {
		e.Attempt, e.State = 1, delayqueue.Dispatched
		if there.Job.MaxAttempts > 1 {
			e.State = delayqueue.AwaitingAck
		}
	}
	return e, nil
}

func sameContent(a, b *delayqueue.Job) bool {
	return string(a.Payload) == string(b.Payload) && a.Group == b.Group && maps.Equal(a.Headers, b.Headers)
}

// Due reads up to limit jobs that were due at now and that nobody has claimed or sent.
func (o *Outbox) Due(ctx context.Context, now time.Time, limit int) ([]Item, error) {
	nowMS := now.UnixMilli()
	var due []Item
	for _, prefix := range []string{duePrefix, durablePrefix} {
		found, err := o.read(ctx, prefix, nowMS, nowMS, limit-len(due))
		if err != nil {
			return nil, err
		}
		due = append(due, found...)
	}
	return due, nil
}

// ToReturn reads up to limit items of each kind that belong into Redis: those that were sent, all
// that were taken in while it was down, and durable ones that are due before until. What somebody
// has claimed is not among them.
func (o *Outbox) ToReturn(ctx context.Context, until time.Time, limit int) ([]Item, error) {
	const always = 1 << 50
	var out []Item
	for _, part := range []struct {
		prefix string
		until  int64
	}{{sentPrefix, always}, {duePrefix, always}, {durablePrefix, until.UnixMilli()}} {
		found, err := o.read(ctx, part.prefix, part.until, o.now().UnixMilli(), limit)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// read reads up to limit items of one kind whose time is before untilMS and that are free at
// freeMS, page by page: what is claimed, or cannot be read, holds up nothing behind it.
func (o *Outbox) read(ctx context.Context, prefix string, untilMS, freeMS int64, limit int) ([]Item, error) {
	var items []Item
	for b := range buckets {
		in := &dynamodb.QueryInput{
			TableName: aws.String(o.table), ConsistentRead: aws.Bool(true), Limit: aws.Int32(pageSize),
			KeyConditionExpression: aws.String("pk = :pk AND sk < :until"), FilterExpression: aws.String("#l <= :free"),
			ExpressionAttributeNames: map[string]string{"#l": "lease"},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":pk": str(prefix + strconv.Itoa(b)), ":until": str(dueText(untilMS + 1)), ":free": num(freeMS),
			},
		}
		for len(items) < limit {
			out, err := o.client.Query(ctx, in)
			if err != nil {
				return nil, fault.Unavailable("dynamodb", err)
			}
			for _, raw := range out.Items {
				if item, err := decode(raw); err == nil && len(items) < limit {
					items = append(items, item)
				}
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
				break
			}
		}
	}
	return items, nil
}

// Count tells how many jobs of a queue wait here for Redis. It reads at most countPages pages of
// each bucket: beyond some thousands it is a lower bound.
func (o *Outbox) Count(ctx context.Context, queue string) (int64, error) {
	var total int64
	for b := range buckets {
		in := &dynamodb.QueryInput{
			TableName: aws.String(o.table), Select: types.SelectCount, Limit: aws.Int32(countPageSize),
			KeyConditionExpression:   aws.String("pk = :pk"),
			FilterExpression:         aws.String("#q = :queue AND #s = :waiting"),
			ExpressionAttributeNames: map[string]string{"#q": "queue", "#s": "state"},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":pk": str(duePrefix + strconv.Itoa(b)), ":queue": str(queue), ":waiting": str(waiting),
			},
		}
		for range countPages {
			out, err := o.client.Query(ctx, in)
			if err != nil {
				return 0, fault.Unavailable("dynamodb", err)
			}
			total += int64(out.Count)
			if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
				break
			}
		}
	}
	return total, nil
}
