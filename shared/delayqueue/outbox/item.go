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

// State is the state of an outbox item.
type State string

// The states.
const (
	// Waiting: the job waits until it is sent to SQS or moved to Redis.
	Waiting State = "waiting"
	// Sending: until the item's lease ends, a process may be sending the job to SQS.
	Sending State = "sending"
	// Sent: SQS has accepted the job. Redis must record this before the item is removed.
	Sent State = "sent"
)

// buckets is the number of partitions that each kind of job item is spread over.
const buckets = 4

// Prefixes of the job items' partition keys. A bucket number follows each prefix.
const (
	plainPrefix   = "plain#"   // jobs that are only in the outbox
	durablePrefix = "durable#" // copies of durable jobs
	sentPrefix    = "sent#"    // jobs in the state Sent
)

// pointerSK is the sort key of every pointer item.
const pointerSK = "id"

// retention is the time from a job's due time until DynamoDB's TTL may remove its item. The TTL
// only cleans up items that were left behind; no job depends on it.
const retention = 30 * 24 * time.Hour

// Item is a job in the outbox.
type Item struct {
	Queue string
	Job   delayqueue.Job
	// Durable reports whether the item is kept, next to the job in Redis, until the job is sent.
	// Other items are removed as soon as Redis has the job.
	Durable bool
	State   State
	// SentAt is the time at which SQS accepted the job. It is set only if State is Sent.
	SentAt time.Time

	pk, sk      string
	leasedUntil time.Time
	fence       int64
}

// Leased reports whether a claim or a delay prevents dispatchers from claiming the item.
func (i *Item) Leased(now time.Time) bool { return i.leasedUntil.After(now) }

// BeingSent reports whether a process may be sending the job to SQS.
func (i *Item) BeingSent(now time.Time) bool { return i.State == Sending && i.Leased(now) }

type key = map[string]types.AttributeValue

func keyOf(pk, sk string) key { return key{"pk": str(pk), "sk": str(sk)} }

func (i *Item) key() key { return keyOf(i.pk, i.sk) }

// pointerKey returns the key of a job's pointer item.
func pointerKey(queue, id string) key { return keyOf("id#"+queue+"#"+id, pointerSK) }

// jobKey returns the key of a job item. pk names the bucket. sk starts with the due time, by which
// dispatchers find the job.
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

// dueText formats a due time so that texts sort in the order of their times.
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

// encode adds a job to its item. The payload is a separate attribute: inside the JSON of "job" it
// would be escaped, and could exceed the size limit of an item.
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
		return fmt.Errorf("error encoding a job of the outbox: %w", err)
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
		return nil, fmt.Errorf("error decoding a job of the outbox: %w", err)
	}
	item.Job = stored.job()
	item.Job.Payload = json.RawMessage(text(raw["payload"]))
	if !json.Valid(item.Job.Payload) {
		return nil, errors.New("error decoding a job of the outbox: its payload is not JSON")
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

// expiry returns the attribute "ttl" of an item that is needed until t: t plus retention, in
// seconds since the epoch.
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

// moment converts an attribute in milliseconds since the epoch to a time. 0 and a missing attribute
// become the zero time.
func moment(v types.AttributeValue) time.Time {
	ms := integer(v)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func (o *Outbox) name() *string { return aws.String(o.table) }
