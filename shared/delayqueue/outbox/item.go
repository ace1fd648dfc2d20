package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// Item is a job in the outbox.
type Item struct {
	Queue string
	Job   delayqueue.Job
	// Durable items stay beside Redis until their job was sent; others are only there until Redis
	// is back.
	Durable bool
	// Sent says that the job was sent from here.
	Sent bool
	// SentAt is when; the zero time when it was not.
	SentAt time.Time

	pk, sk string
	lease  int64
	fence  int64
}

// dueKey is where dispatchers find a job: by bucket, and in it by time.
func dueKey(queue string, j delayqueue.Job, durable bool) (pk, sk string) {
	prefix := duePrefix
	if durable {
		prefix = durablePrefix
	}
	return prefix + bucketOf(j.ID), dueText(ceilMS(j.RunAt)) + "#" + queue + "#" + j.ID
}

func bucketOf(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return strconv.Itoa(int(h.Sum32() % buckets))
}

func dueText(ms int64) string { return fmt.Sprintf("%016d", ms) }

func idKey(queue, id string) string { return "id#" + queue + "#" + id }

// encode adds a job to its item. The payload is an attribute of its own: within the job's JSON it
// would be written anew, and could grow past what an item holds.
func encode(j *delayqueue.Job, item map[string]types.AttributeValue) error {
	bare := *j
	bare.Payload = nil
	encoded, err := json.Marshal(bare)
	if err != nil {
		return fmt.Errorf("error encoding a job: %w", err)
	}
	item["job"], item["payload"] = str(string(encoded)), str(string(j.Payload))
	return nil
}

func decode(raw map[string]types.AttributeValue) (Item, error) {
	item := Item{
		Queue: text(raw["queue"]), pk: text(raw["pk"]), sk: text(raw["sk"]), lease: integer(raw["lease"]),
		fence: integer(raw["fence"]),
		Sent:  text(raw["state"]) == sent,
	}
	if item.Sent {
		item.SentAt = moment(raw["sent_at"])
	}
	item.Durable = strings.HasPrefix(item.pk, durablePrefix)
	if err := json.Unmarshal([]byte(text(raw["job"])), &item.Job); err != nil {
		return Item{}, fmt.Errorf("error decoding a job of the outbox: %w", err)
	}
	item.Job.Payload = json.RawMessage(text(raw["payload"]))
	if !json.Valid(item.Job.Payload) {
		return Item{}, errors.New("a job of the outbox has no payload that is JSON")
	}
	return item, nil
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// ttlOf returns the TTL, in seconds since the epoch, of an item whose job is due at dueMS.
func ttlOf(dueMS int64) types.AttributeValue { return num((dueMS + keep.Milliseconds()) / 1000) }

// ceilMS returns t in milliseconds since the epoch, rounded up.
func ceilMS(t time.Time) int64 {
	return t.Add(time.Millisecond - time.Nanosecond).UnixMilli()
}

// moment reads an attribute of milliseconds since the epoch.
func moment(v types.AttributeValue) time.Time { return time.UnixMilli(integer(v)).UTC() }

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
