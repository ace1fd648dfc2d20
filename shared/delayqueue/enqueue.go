package delayqueue

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Enqueue takes in jobs, each for itself: results and errors are in the order of jobs. Jobs of one shard are one script call, and the shards are called
// at once. A job whose id is known changes nothing. Jobs must be valid (see functions/enqueue) and have ids.
func (q *Queues) Enqueue(ctx context.Context, queue string, jobs []Job) ([]Enqueued, []error) {
	results, errs := make([]Enqueued, len(jobs)), make([]error, len(jobs))
	known, err := q.elsewhere(ctx, queue, jobs)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return results, errs
	}
	byShard := make(map[int][]int)
	for i := range jobs {
		if info, ok := known[jobs[i].ID]; ok {
			results[i] = q.duplicate(&jobs[i], info)
			continue
		}
		shard := q.shardOf(jobs[i].ID)
		byShard[shard] = append(byShard[shard], i)
	}
	var wait sync.WaitGroup
	for shard, members := range byShard {
		put := func() {
			err := q.enqueueShard(ctx, queue, shard, jobs, members, results)
			for _, i := range members {
				errs[i] = err
			}
		}
		if len(byShard) == 1 {
			put()
			break
		}
		wait.Go(put)
	}
	wait.Wait()
	return results, errs
}

// elsewhere finds jobs that are known in a shard of an earlier shard count, where they are served to their end: one round trip, and none while there was
// only ever one count.
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
					asked = append(asked, question{jobs[i].ID, p.HGet(ctx, at.jobs, jobs[i].ID), p.ZScore(ctx, at.done, jobs[i].ID)})
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
		if a.record.Err() != nil || a.over.Err() == nil && a.over.Val() <= float64(time.Now().UnixMilli()) { // unknown, or only not pruned yet
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
		ID: j.ID, State: info.State, RunAtMS: info.RunAtMS, Attempt: info.Attempt, Duplicate: true, Durable: info.Durable,
		Differs: string(j.Payload) != string(info.Payload) || j.Group != info.Group || !maps.Equal(j.Headers, info.Headers),
	}
}

func (q *Queues) enqueueShard(ctx context.Context, queue string, shard int, jobs []Job, members []int, results []Enqueued) error {
	p := placeOf(queue, shard)
	args := make([]any, 0, 3+5*len(members))
	args = append(args, wakeChannel, wakeMessage(queue, shard), len(members))
	for _, i := range members {
		j := &jobs[i]
		content, err := q.codec.content(j)
		if err != nil {
			return err
		}
		args = append(args, j.ID, j.when(), j.MaxAttempts, j.options(), content)
	}
	rows, err := q.rows(ctx, q.scripts.enqueue, []string{p.due, p.done, p.jobs}, args...)
	if err != nil {
		return err
	}
	if len(rows) != 3*len(members) {
		return errors.New("enqueue replied with another number of jobs")
	}
	for k, i := range members {
		h, err := parseHeader(text(rows[3*k+2]))
		if err != nil {
			return err
		}
		known := number(rows[3*k])
		results[i] = Enqueued{
			ID: jobs[i].ID, State: h.state, RunAtMS: h.runAtMS, Attempt: h.attempt, Duplicate: known > 0, Differs: known == 2, Durable: h.durable,
		}
	}
	return nil
}

// when is a due time as scripts read it: relative to Redis' clock, or absolute.
func (j *Job) when() string {
	if j.RunAtMS > 0 {
		return "r" + strconv.FormatInt(j.RunAtMS, 10)
	}
	return "d" + strconv.FormatInt(j.Delay.Milliseconds(), 10)
}
