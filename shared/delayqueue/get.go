package delayqueue

import (
	"context"
	"errors"
	"fmt"
)

// Get reads a job. Errors: [ErrInvalid], [ErrNotFound], [ErrUnavailable].
func (q *Queues) Get(ctx context.Context, queue, id string) (Info, error) {
	return q.find(ctx, queue, id, func(shard int) (Info, error) {
		var record string
		exists := false
		err := q.conn.Do(ctx, func(ctx context.Context) error {
			values, err := q.conn.Client().HMGet(ctx, placeOf(queue, shard).jobs, id).Result()
			if err == nil {
				record, exists = values[0].(string)
			}
			return err
		})
		switch {
		case err != nil:
			return Info{}, err
		case !exists:
			return Info{}, notFound(id)
		}

		_, info, err := q.codec.decode(id, record)
		return info, err
	})
}

// find calls the function try for each shard that may contain the job. It stops at the first result
// other than [ErrNotFound].
func (q *Queues) find(ctx context.Context, queue, id string, try func(shard int) (Info, error)) (Info, error) {
	if err := checkJobName(queue, id); err != nil {
		return Info{}, err
	}
	if _, err := q.allShards(ctx); err != nil {
		return Info{}, err
	}

	var info Info
	var err error
	for _, shard := range q.candidates(id) {
		if info, err = try(shard); !errors.Is(err, ErrNotFound) {
			return info, err
		}
	}
	return info, err
}

// parseTransition parses the reply of a script that changes one job: {1, header} if the script
// changed it, {0, header} if the job's state does not allow the change, and {0, ""} if the job does
// not exist.
func parseTransition(id string, rows []any) (Info, error) {
	if len(rows) != 2 {
		return Info{}, fmt.Errorf("unexpected reply from a queue script: %v", rows)
	}
	line := text(rows[1])
	if line == "" {
		return Info{}, notFound(id)
	}
	h, err := parseHeader(line)
	if err != nil {
		return Info{}, err
	}
	if number(rows[0]) == 0 {
		return Info{}, conflict(&h)
	}
	return h.info(id), nil
}
