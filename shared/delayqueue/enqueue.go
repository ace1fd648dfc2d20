package delayqueue

import (
	"context"
	"errors"
	"strconv"
	"sync"
)

// Enqueue takes in jobs, each for itself: results and errors are in the order of jobs. Jobs of one shard are one script call, and the shards are called
// at once. A job whose id is known changes nothing. Jobs must be valid (see functions/enqueue) and have ids.
func (q *Queues) Enqueue(ctx context.Context, queue string, jobs []Job) ([]Enqueued, []error) {
	results, errs := make([]Enqueued, len(jobs)), make([]error, len(jobs))
	byShard := make(map[int][]int)
	for i := range jobs {
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
			ID: jobs[i].ID, State: h.state, RunAtMS: h.runAtMS, Attempt: h.attempt, Duplicate: known > 0, Differs: known == 2,
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
