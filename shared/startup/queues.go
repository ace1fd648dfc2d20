package startup

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

const day = 24 * time.Hour

// QueueConfig reads SLUICE_QUEUE_SHARDS, SLUICE_DEDUP_WINDOW_MS (one second to seven days) and
// SLUICE_DEAD_RETENTION_MS (one second to 366 days). If a variable is not set, the default of
// [delayqueue.Config] applies.
func (e *Env) QueueConfig() delayqueue.Config {
	const second = 1000
	return delayqueue.Config{
		Shards:        int(e.number("SLUICE_QUEUE_SHARDS", 1, delayqueue.MaxShards)),
		DedupWindow:   instant.Milliseconds(e.number("SLUICE_DEDUP_WINDOW_MS", second, (7 * day).Milliseconds())),
		DeadRetention: instant.Milliseconds(e.number("SLUICE_DEAD_RETENTION_MS", second, (366 * day).Milliseconds())),
	}
}

// QueueURLs reads SLUICE_QUEUES, a JSON object that maps queue names to the URLs of their SQS
// queues.
func (e *Env) QueueURLs() map[string]string {
	const advice = `give a JSON object such as {"orders": "https://sqs.eu-central-1.amazonaws.com/1/orders"}`
	text := e.required("SLUICE_QUEUES", advice)
	if text == "" {
		return nil
	}
	var urls map[string]string
	if err := json.Unmarshal([]byte(text), &urls); err != nil {
		e.refuse("SLUICE_QUEUES is not a JSON object of names and URLs: %w; %s", err, advice)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		if !fault.ValidName(name) {
			e.refuse("SLUICE_QUEUES has a queue named %q; a name %s", name, fault.NameMessage)
		}
		if urls[name] == "" {
			e.refuse("SLUICE_QUEUES has no URL for the queue %q; give the URL of its SQS queue", name)
		}
	}
	return urls
}
