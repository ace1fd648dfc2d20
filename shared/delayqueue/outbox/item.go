package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/instant"
)

// State is what happens to a job of the outbox.
type State string

// The states.
const (
	// Waiting jobs are to be sent or moved to Redis.
	Waiting State = "waiting"
	// Sending jobs may be on their way to SQS until the item's lease ends.
	Sending State = "sending"
	// Sent jobs were accepted by SQS. Redis must record that before the item is removed.
	Sent State = "sent"
)

// buckets is the number of partitions that each kind of job item is spread over.
const buckets = 4

// Prefixes of the job items' partition keys. A bucket number follows.
const (
	plainPrefix   = "plain#"   // jobs that are only here
	durablePrefix = "durable#" // copies of durable jobs
	sentPrefix    = "sent#"    // jobs in the state Sent
)

// pointerSK is the sort key of every pointer item.
const pointerSK = "id"

// retention is how long an item outlives the due time of its job before DynamoDB's TTL may remove
// it. It only cleans up; no job depends on it.
const retention = 30 * 24 * time.Hour

// Item is a job of the outbox.
type Item struct {
	Queue string
	Job   delayqueue.Job
	// Durable items stay next to their job in Redis until it is sent. Other items leave as soon as
	// Redis has the job.
	Durable bool
	State   State
	// SentAt is when SQS accepted the job. It is zero unless State is Sent.
	SentAt time.Time

	pk, sk      string
	leasedUntil time.Time
	fence       int64
}

// Leased reports whether a claim or a delay keeps dispatchers from taking the item.
func (i *Item) Leased(now time.Time) bool { return i.leasedUntil.After(now) }

// BeingSent reports whether SQS may accept the job at any moment.
func (i *Item) BeingSent(now time.Time) bool { return i.State == Sending && i.Leased(now) }

type key = map[string]types.AttributeValue

func keyOf(pk, sk string) key { return key{"pk": str(pk), "sk": str(sk)} }

func (i *Item) key() key { return keyOf(i.pk, i.sk) }

// pointerKey is the key of the pointer item of a job.
func pointerKey(queue, id string) key { return keyOf("id#"+queue+"#"+id, pointerSK) }

// jobKey returns the key under which dispatchers find a job: its bucket, and in it its due time.
func jobKey(queue string, j *delayqueue.Job, durable bool) (pk, sk string) {
	prefix := plainPrefix
	if durable {
		prefix = durablePrefix
	}
	return prefix + bucketOf(j.ID), dueText(j.RunAt) + "#" + queue + "#" + j.ID
}

func bucketOf(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return strconv.Itoa(int(h.Sum32() % buckets))
}

// dueText formats a due time so that the order of the texts is the order of the times.
func dueText(at time.Time) string { return fmt.Sprintf("%016d", at.UnixMilli()) }

// storedJob is the attribute "job" of a job item, in JSON.
type storedJob struct {
	ID             string            `json:"id"`
	RunAtMS        int64             `json:"run_at"`
	MaxAttempts    int               `json:"max_attempts"`
	AckTimeoutMS   int64             `json:"ack_timeout_ms,omitempty"`
	BackoffFirstMS int64             `json:"backoff_initial_ms,omitempty"`
	BackoffMaxMS   int64             `json:"backoff_max_ms,omitempty"`
	BackoffFactor  float64           `json:"backoff_multiplier,omitempty"`
	BackoffJitter  bool              `json:"backoff_jitter,omitempty"`
	ExpiresAtMS    int64             `json:"expires_at,omitempty"`
	Group          string            `json:"group,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	Trace          string            `json:"trace,omitempty"`
}

// encode adds a job to its item. The payload is an attribute of its own: JSON within JSON would be
// escaped, and could grow over the size limit of an item.
func encode(j *delayqueue.Job, item map[string]types.AttributeValue) error {
	stored := storedJob{
		ID: j.ID, RunAtMS: j.RunAt.UnixMilli(), MaxAttempts: j.MaxAttempts,
		AckTimeoutMS:   instant.CeilMilliseconds(j.AckTimeout),
		BackoffFirstMS: instant.CeilMilliseconds(j.Backoff.Initial),
		BackoffMaxMS:   instant.CeilMilliseconds(j.Backoff.Max),
		BackoffFactor:  j.Backoff.Multiplier, BackoffJitter: j.Backoff.Jitter,
		Group: j.Group, Headers: j.Headers, Trace: j.Trace,
	}
	if !j.ExpiresAt.IsZero() {
		stored.ExpiresAtMS = ceil(j.ExpiresAt).UnixMilli()
	}

	encoded, err := json.Marshal(stored)
	if err != nil {
		return fmt.Errorf("encode a job of the outbox: %w", err)
	}
	item["job"], item["payload"] = str(string(encoded)), str(string(j.Payload))
	return nil
}

func decode(raw map[string]types.AttributeValue) (*Item, error) {
	item := &Item{
		Queue: text(raw["queue"]), State: State(text(raw["state"])), SentAt: moment(raw["sent_at"]),
		pk: text(raw["pk"]), sk: text(raw["sk"]), leasedUntil: moment(raw["lease"]), fence: integer(raw["fence"]),
	}
	item.Durable = strings.HasPrefix(item.pk, durablePrefix)

	var stored storedJob
	if err := json.Unmarshal([]byte(text(raw["job"])), &stored); err != nil {
		return nil, fmt.Errorf("decode a job of the outbox: %w", err)
	}
	item.Job = stored.job()
	item.Job.Payload = json.RawMessage(text(raw["payload"]))
	if !json.Valid(item.Job.Payload) {
		return nil, errors.New("decode a job of the outbox: its payload is not JSON")
	}
	return item, nil
}

func (s *storedJob) job() delayqueue.Job {
	j := delayqueue.Job{
		ID: s.ID, RunAt: time.UnixMilli(s.RunAtMS).UTC(), MaxAttempts: s.MaxAttempts,
		AckTimeout: instant.Milliseconds(s.AckTimeoutMS),
		Backoff: delayqueue.Backoff{
			Initial: instant.Milliseconds(s.BackoffFirstMS), Max: instant.Milliseconds(s.BackoffMaxMS),
			Multiplier: s.BackoffFactor, Jitter: s.BackoffJitter,
		},
		Group: s.Group, Headers: s.Headers, Trace: s.Trace,
	}
	if s.ExpiresAtMS != 0 {
		j.ExpiresAt = time.UnixMilli(s.ExpiresAtMS).UTC()
	}
	return j
}

// ceil rounds t up to a whole millisecond.
func ceil(t time.Time) time.Time {
	return t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).UTC()
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// millis converts a time to an attribute in milliseconds since the epoch; the zero time becomes 0.
func millis(t time.Time) types.AttributeValue {
	if t.IsZero() {
		return num(0)
	}
	return num(t.UnixMilli())
}

// expiry returns the attribute "ttl", in seconds since the epoch, of an item that nobody needs
// after a time.
func expiry(t time.Time) types.AttributeValue { return num(t.Add(retention).Unix()) }

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func integer(v types.AttributeValue) int64 {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64)
		return i
	}
	return 0
}

// moment converts an attribute in milliseconds since the epoch; 0 or none is the zero time.
func moment(v types.AttributeValue) time.Time {
	ms := integer(v)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func (o *Outbox) name() *string { return aws.String(o.table) }
