package outbox

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/fault"
)

const (
	// pageSize is the number of items that one query reads.
	pageSize = 100
	// countPageSize and countPages limit the items that Count reads in each bucket.
	countPageSize = 250
	countPages    = 20
)

// found is the result of lookUp.
type found struct {
	item    *Item
	pointer key // the key that the pointer item holds; nil if there is no pointer item
}

// Find reads the item of a job. It returns nil if the job has no item. Errors: store_unavailable.
func (o *Outbox) Find(ctx context.Context, queue, id string) (*Item, error) {
	f, err := o.lookUp(ctx, queue, id)
	return f.item, err
}

// lookUp reads the pointer item of a job and then the job item. Between the two reads, another
// process may move the job item to a different key. If the job item is missing, lookUp therefore
// reads the pointer again. If the pointer is unchanged, the job item does not exist.
func (o *Outbox) lookUp(ctx context.Context, queue, id string) (found, error) {
	var before key
	for range maxRaces {
		pointer, err := o.get(ctx, pointerKey(queue, id))
		if err != nil || len(pointer) == 0 {
			return found{}, err
		}
		target := key{"pk": pointer["item_pk"], "sk": pointer["item_sk"]}
		if before != nil && sameKey(before, target) {
			return found{pointer: target}, nil
		}

		raw, err := o.get(ctx, target)
		if err != nil {
			return found{}, err
		}
		if len(raw) > 0 {
			item, err := decode(raw)
			return found{item: item, pointer: target}, err
		}
		before = target
	}
	return found{}, tooManyRaces()
}

func sameKey(a, b key) bool {
	return text(a["pk"]) == text(b["pk"]) && text(a["sk"]) == text(b["sk"])
}

func (o *Outbox) get(ctx context.Context, key key) (map[string]types.AttributeValue, error) {
	out, err := o.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: o.name(), Key: key, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fault.Unavailable("dynamodb", err)
	}
	return out.Item, nil
}

// Due reads up to limit jobs that are due now and neither claimed nor sent. It skips the jobs of
// the queues in exceptQueues. Errors: store_unavailable.
func (o *Outbox) Due(ctx context.Context, exceptQueues []string, limit int) ([]*Item, error) {
	now := o.now()
	var due []*Item
	for _, prefix := range []string{plainPrefix, durablePrefix} {
		items, err := o.read(ctx, selection{prefix: prefix, until: now, free: now, except: exceptQueues},
			limit-len(due))
		if err != nil {
			return nil, err
		}
		due = append(due, items...)
	}
	return due, nil
}

// forever is later than every due time.
var forever = time.UnixMilli(1 << 50) //nolint:gochecknoglobals // a constant that Go cannot declare as one

// Movable reads unclaimed items that must be moved to Redis. There are three kinds: sent jobs, jobs
// that are only in the outbox, and durable jobs that are due at durableDueBy or earlier. It reads
// up to limit items of each kind. Errors: store_unavailable.
func (o *Outbox) Movable(ctx context.Context, durableDueBy time.Time, limit int) ([]*Item, error) {
	now := o.now()
	var out []*Item
	for _, s := range []selection{
		{prefix: sentPrefix, until: forever, free: now},
		{prefix: plainPrefix, until: forever, free: now},
		{prefix: durablePrefix, until: durableDueBy, free: now},
	} {
		items, err := o.read(ctx, s, limit)
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	return out, nil
}

// selection selects items of one kind.
type selection struct {
	prefix string
	until  time.Time // the latest due time
	free   time.Time // select only items whose lease has ended by this time
	except []string  // queues to skip
}

func (s *selection) query(table *string, bucket int) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		TableName: table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(pageSize),
		KeyConditionExpression: aws.String("pk = :pk AND sk < :until"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk":    str(s.prefix + strconv.Itoa(bucket)),
			":until": str(dueText(s.until.Add(time.Millisecond))),
			":free":  millis(s.free),
		},
		ExpressionAttributeNames: map[string]string{"#lease": "lease"},
	}
	filters := []string{"#lease <= :free"}
	for i, queue := range s.except {
		name := ":queue" + strconv.Itoa(i)
		in.ExpressionAttributeNames["#queue"], in.ExpressionAttributeValues[name] = "queue", str(queue)
		filters = append(filters, "#queue <> "+name)
	}
	in.FilterExpression = aws.String(strings.Join(filters, " AND "))
	return in
}

// read reads up to limit items of a selection. It reads as many pages as needed, because a page may
// contain items that are claimed or cannot be decoded.
func (o *Outbox) read(ctx context.Context, s selection, limit int) ([]*Item, error) {
	var items []*Item
	for bucket := range buckets {
		in := s.query(o.name(), bucket)
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

// Count returns the number of jobs of a queue that are only in the outbox. It reads at most 5000
// items in each of the 4 buckets, so with more items the result is a lower bound. Errors:
// store_unavailable.
func (o *Outbox) Count(ctx context.Context, queue string) (int64, error) {
	var total int64
	for bucket := range buckets {
		in := &dynamodb.QueryInput{
			TableName: o.name(), Select: types.SelectCount, Limit: aws.Int32(countPageSize),
			KeyConditionExpression:   aws.String("pk = :pk"),
			FilterExpression:         aws.String("#queue = :queue"),
			ExpressionAttributeNames: map[string]string{"#queue": "queue"},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":pk": str(plainPrefix + strconv.Itoa(bucket)), ":queue": str(queue),
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
