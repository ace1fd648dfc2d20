package delayqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// Push enqueues one job, like [Queues.Enqueue]. It returns the fields Enqueued and Err of the
// [Result].
func (q *Queues) Push(ctx context.Context, queue string, job Job) (Enqueued, error) {
	result := q.Enqueue(ctx, queue, []Job{job})[0]
	return result.Enqueued, result.Err
}

// Enqueue normalizes jobs and enqueues them. It returns one result for each job, in the same order.
// Each job succeeds or fails independently. If a job with the same ID already exists, Enqueue
// changes nothing, and the result describes the existing job.
//
// Enqueue makes one script call for each shard and sends all calls in one round trip.
func (q *Queues) Enqueue(ctx context.Context, queue string, jobs []Job) []Result {
	results := make([]Result, len(jobs))
	for i := range jobs {
		results[i].Job, results[i].Err = jobs[i].Normalize()
	}
	q.enqueue(ctx, queue, results)
	return results
}

// EnqueueAccepted enqueues jobs that were already normalized and accepted, such as jobs from the
// outbox. It does not check them again. It therefore also accepts a job whose due time is now after
// its ExpiresAt.
func (q *Queues) EnqueueAccepted(ctx context.Context, queue string, jobs []Job) []Result {
	results := make([]Result, len(jobs))
	for i := range jobs {
		results[i].Job = jobs[i]
	}
	q.enqueue(ctx, queue, results)
	return results
}

// enqueue enqueues the job of each result that has no error.
func (q *Queues) enqueue(ctx context.Context, queue string, results []Result) {
	pending := make([]*Result, 0, len(results))
	for i := range results {
		if results[i].Err == nil {
			pending = append(pending, &results[i])
		}
	}
	if len(pending) == 0 {
		return
	}

	if err := checkQueue(queue); err != nil {
		fail(pending, err)
		return
	}
	existing, err := q.findElsewhere(ctx, queue, pending)
	if err != nil {
		fail(pending, err)
		return
	}

	byShard := make([][]*Result, q.cfg.Shards)
	for _, r := range pending {
		if info, exists := existing[r.Job.ID]; exists {
			r.Enqueued = duplicateOf(&r.Job, &info)
			continue
		}
		shard := q.shardOf(r.Job.ID)
		byShard[shard] = append(byShard[shard], r)
	}
	q.enqueueShards(ctx, queue, byShard)
}

func fail(results []*Result, err error) {
	for _, r := range results {
		r.Err = err
	}
}

// findElsewhere looks up the IDs of the pending jobs in their shards under other shard counts,
// because a new shard count does not move existing jobs. It returns the existing jobs by ID. The
// lookups take one round trip, or none if the shard count has never changed.
func (q *Queues) findElsewhere(ctx context.Context, queue string, pending []*Result) (map[string]Info, error) {
	if _, err := q.allShards(ctx); err != nil {
		return nil, err
	}
	if q.layoutCount() < 2 {
		return nil, nil
	}

	type lookup struct {
		id     string
		record *redis.StringCmd
		until  *redis.FloatCmd
	}
	var lookups []lookup
	err := q.conn.Do(ctx, func(ctx context.Context) error {
		lookups = lookups[:0]
		_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, r := range pending {
				id := r.Job.ID
				for _, shard := range q.candidates(id)[1:] {
					at := placeOf(queue, shard)
					lookups = append(lookups, lookup{id, p.HGet(ctx, at.jobs, id), p.ZScore(ctx, at.done, id)})
				}
			}
			return nil
		})
		return err
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}

	existing := make(map[string]Info)
	now := float64(time.Now().UnixMilli())
	for _, l := range lookups {
		outlived := l.until.Err() == nil && l.until.Val() <= now // its dedup window has ended
		if l.record.Err() != nil || outlived {
			continue
		}
		_, info, err := q.codec.decode(l.id, l.record.Val())
		if err != nil {
			return nil, err
		}
		existing[l.id] = info
	}
	return existing, nil
}

func duplicateOf(j *Job, existing *Info) Enqueued {
	sameContent := string(j.Payload) == string(existing.Payload) && j.Group == existing.Group &&
		maps.Equal(j.Headers, existing.Headers)
	return Enqueued{
		ID:        j.ID,
		State:     existing.State,
		RunAt:     existing.RunAt,
		Attempt:   existing.Attempt,
		Duplicate: true,
		Differs:   !sameContent,
		Durable:   existing.Durable,
	}
}

// enqueueShards makes one script call for each shard, all in one round trip.
func (q *Queues) enqueueShards(ctx context.Context, queue string, byShard [][]*Result) {
	var calls []redisconn.Call
	var callers [][]*Result // the results of each call
	for shard, results := range byShard {
		if len(results) == 0 {
			continue
		}
		args, err := q.enqueueArgs(wakeMessage(queue, shard), results)
		if err != nil {
			fail(results, err)
			continue
		}
		p := placeOf(queue, shard)
		calls = append(calls, redisconn.Call{Keys: []string{p.due, p.done, p.jobs}, Args: args})
		callers = append(callers, results)
	}

	for i, reply := range q.conn.RunEach(ctx, q.scripts.enqueue, calls) {
		rows, _ := reply.Value.([]any)
		switch {
		case reply.Err != nil:
			fail(callers[i], reply.Err)
		case len(rows) != len(callers[i]):
			fail(callers[i], fmt.Errorf("unexpected reply from the enqueue script: %v", reply.Value))
		default:
			for k, r := range callers[i] {
				r.Enqueued, r.Err = parseEnqueued(&r.Job, rows[k])
			}
		}
	}
}

// enqueueArgs returns the arguments of scripts/enqueue.lua. All due times and records are
// substrings of one string. They are passed as *string, because storing a string in []any
// allocates.
func (q *Queues) enqueueArgs(wake string, results []*Result) ([]any, error) {
	size := 0
	for _, r := range results {
		size += len(r.Job.Payload) + 128
	}
	buffer := make([]byte, 0, size)
	ends := make([]int, 0, 2*len(results))
	for _, r := range results {
		var err error
		buffer = r.Job.appendDue(buffer)
		ends = append(ends, len(buffer))
		if buffer, err = q.codec.appendRecord(buffer, &r.Job); err != nil {
			return nil, err
		}
		ends = append(ends, len(buffer))
	}

	whole, start := string(buffer), 0
	parts := make([]string, len(ends))
	for i, end := range ends {
		parts[i], start = whole[start:end], end
	}
	args := make([]any, 0, 2+4*len(results))
	args = append(args, wakeChannel, wake)
	for i, r := range results {
		due, record := &parts[2*i], &parts[2*i+1]
		args = append(args, &r.Job.ID, due, r.Job.MaxAttempts, record)
	}
	return args, nil
}

// parseEnqueued parses the reply of scripts/enqueue.lua for one job.
func parseEnqueued(j *Job, reply any) (Enqueued, error) {
	if runAtMS, added := reply.(int64); added {
		return Enqueued{ID: j.ID, State: Scheduled, RunAt: fromUnixMS(runAtMS), Durable: j.Durable}, nil
	}
	existing := text(reply)
	if existing == "" {
		return Enqueued{}, errors.New("the enqueue script returned an empty reply for a job")
	}
	h, err := parseHeader(existing[1:])
	if err != nil {
		return Enqueued{}, err
	}
	return Enqueued{
		ID:        j.ID,
		State:     h.state,
		RunAt:     fromUnixMS(h.runAtMS),
		Attempt:   h.attempt,
		Duplicate: true,
		Differs:   existing[0] == '2',
		Durable:   h.durable,
	}, nil
}

// appendDue appends the due time in the format that scripts read: "d<ms>" is a delay from now by
// Redis' clock, and "r<ms>" is a time in milliseconds since the epoch.
func (j *Job) appendDue(b []byte) []byte {
	if !j.RunAt.IsZero() {
		return strconv.AppendInt(append(b, 'r'), max(0, unixMS(j.RunAt)), 10)
	}
	return strconv.AppendInt(append(b, 'd'), instant.CeilMilliseconds(j.Delay), 10)
}
