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

// Enqueue normalizes jobs and enqueues them, each independently of the others: results and errors are
// in the order of jobs. If a job of an ID already exists, nothing is enqueued for it. Jobs of one shard
// are one script call, and all calls are one round trip.
func (q *Queues) Enqueue(ctx context.Context, queue string, jobs []Job) ([]Enqueued, []error) {
	results, errs := make([]Enqueued, len(jobs)), make([]error, len(jobs))
	var valid []Job
	var at []int
	for i := range jobs {
		j, err := jobs[i].Normalize()
		if err != nil {
			errs[i] = err
			continue
		}
		valid, at = append(valid, j), append(at, i)
	}
	enqueued, failed := q.EnqueueAccepted(ctx, queue, valid)
	for k, i := range at {
		results[i], errs[i] = enqueued[k], failed[k]
	}
	return results, errs
}

// EnqueueAccepted is Enqueue for jobs that were normalized and accepted before, such as those of the
// outbox. It does not normalize them again: an accepted job is not refused later, for example because
// its due time has moved past its ExpiresAt.
func (q *Queues) EnqueueAccepted(ctx context.Context, queue string, jobs []Job) ([]Enqueued, []error) {
	results, errs := make([]Enqueued, len(jobs)), make([]error, len(jobs))
	if len(jobs) == 0 {
		return results, errs
	}
	known, err := q.elsewhere(ctx, queue, jobs)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return results, errs
	}
	members := make([][]int, q.cfg.Shards)
	for i := range jobs {
		if info, ok := known[jobs[i].ID]; ok {
			results[i] = q.duplicate(&jobs[i], info)
			continue
		}
		shard := q.shardOf(jobs[i].ID)
		members[shard] = append(members[shard], i)
	}
	q.enqueueShards(ctx, queue, jobs, members, results, errs)
	return results, errs
}

// elsewhere finds jobs that are known in a shard of an earlier shard count, where they are served
// to their end: one round trip, and none while there was only ever one count.
func (q *Queues) elsewhere(ctx context.Context, queue string, jobs []Job) (map[string]Info, error) {
	if _, err := q.allShards(ctx); err != nil {
		return nil, err
	}
	if q.layoutCount() < 2 {
		return nil, nil
	}
	type question struct {
		id     string
		record *redis.StringCmd
		over   *redis.FloatCmd
	}
	var asked []question
	err := q.conn.Do(ctx, func(ctx context.Context) error {
		asked = asked[:0]
		_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range jobs {
				for _, shard := range q.candidates(jobs[i].ID)[1:] {
					at := placeOf(queue, shard)
					asked = append(asked, question{jobs[i].ID, p.HGet(ctx, at.jobs, jobs[i].ID),
						p.ZScore(ctx, at.done, jobs[i].ID)})
				}
			}
			return nil
		})
		return err
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	known := make(map[string]Info)
	for _, a := range asked {
		// unknown, or only not pruned yet
		if a.record.Err() != nil || a.over.Err() == nil && a.over.Val() <= float64(time.Now().UnixMilli()) {
			continue
		}
		_, info, _, err := q.codec.decode(a.id, a.record.Val())
		if err != nil {
			return nil, err
		}
		known[a.id] = info
	}
	return known, nil
}

func (q *Queues) duplicate(j *Job, info Info) Enqueued {
	return Enqueued{
		ID: j.ID, State: info.State, RunAt: info.RunAt, Attempt: info.Attempt, Duplicate: true,
		Durable: info.Durable,
		Differs: string(j.Payload) != string(info.Payload) || j.Group != info.Group ||
			!maps.Equal(j.Headers, info.Headers),
	}
}

// enqueueShards enqueues the members of each shard, with a call for each, all at once.
func (q *Queues) enqueueShards(ctx context.Context, queue string, jobs []Job, members [][]int, results []Enqueued,
	errs []error) {
	var calls []redisconn.Call
	var of [][]int
	for shard, list := range members {
		if len(list) == 0 {
			continue
		}
		p := placeOf(queue, shard)
		args, err := q.enqueueArgs(wakeMessage(queue, shard), jobs, list)
		if err != nil {
			fail(errs, list, err)
			continue
		}
		calls, of = append(calls, redisconn.Call{Keys: []string{p.due, p.done, p.jobs}, Args: args}), append(of, list)
	}
	for k, reply := range q.conn.RunEach(ctx, q.scripts.enqueue, calls) {
		rows, _ := reply.Value.([]any)
		err := reply.Err
		if err == nil && len(rows) != len(of[k]) {
			err = fmt.Errorf("unexpected reply of enqueue: %v", reply.Value)
		}
		if err != nil {
			fail(errs, of[k], err)
			continue
		}
		for n, i := range of[k] {
			results[i], errs[i] = enqueuedOf(&jobs[i], rows[n])
		}
	}
}

// fail gives jobs one error.
func fail(errs []error, members []int, err error) {
	for _, i := range members {
		errs[i] = err
	}
}

func (q *Queues) enqueueArgs(wake string, jobs []Job, members []int) ([]any, error) {
	args := make([]any, 0, 2+4*len(members))
	args = append(args, wakeChannel, wake)
	for _, i := range members {
		j := &jobs[i]
		record, err := q.codec.fresh(j)
		if err != nil {
			return nil, err
		}
		args = append(args, j.ID, j.when(), j.MaxAttempts, record)
	}
	return args, nil
}

// enqueuedOf reads what scripts/enqueue.lua says of a job.
func enqueuedOf(j *Job, reply any) (Enqueued, error) {
	if runAtMS, taken := reply.(int64); taken {
		return Enqueued{ID: j.ID, State: Scheduled, RunAt: fromUnixMS(runAtMS), Durable: j.Durable}, nil
	}
	known, _ := reply.(string)
	if known == "" {
		return Enqueued{}, errors.New("enqueue did not say what became of a job")
	}
	h, err := parseHeader(known[1:])
	if err != nil {
		return Enqueued{}, err
	}
	return Enqueued{
		ID: j.ID, State: h.state, RunAt: h.runAt(), Attempt: h.attempt, Duplicate: true, Differs: known[0] == '2',
		Durable: h.durable,
	}, nil
}

// when is a due time as scripts read it: relative to Redis' clock, or absolute.
func (j *Job) when() string {
	if !j.RunAt.IsZero() {
		return "r" + strconv.FormatInt(max(0, unixMS(j.RunAt)), 10)
	}
	return "d" + strconv.FormatInt(instant.CeilMilliseconds(j.Delay), 10)
}
