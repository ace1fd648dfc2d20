package delayqueue

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

const (
	// defaultPage is the default of [ListOptions.Limit].
	defaultPage = 50
	// maxEmptyReads is the number of reads without a job in the requested state after which List
	// ends a page.
	maxEmptyReads = 4
)

// ListOptions select a page of jobs.
type ListOptions struct {
	// State is the state of the jobs to list. "" selects all states.
	State State
	// Limit is the maximum number of jobs on the page: 1 to MaxPage. Defaults to 50.
	Limit int
	// Cursor is the NextCursor of the previous page. "" selects the first page.
	Cursor string
}

// Page is a page of jobs.
type Page struct {
	Jobs []Info
	// NextCursor is the cursor of the next page, or "" on the last page.
	NextCursor string
}

func (o *ListOptions) normalize() error {
	var f fault.Fields
	if o.State != "" && !o.State.Valid() {
		f.Add("state", "must be one of scheduled, dispatching, dispatched, awaiting_ack, succeeded, canceled, "+
			"expired and dead")
	}
	if o.Limit == 0 {
		o.Limit = defaultPage
	}
	if o.Limit < 1 || o.Limit > MaxPage {
		f.Add("limit", "must be 1 to %d", MaxPage)
	}
	return f.Err()
}

// List returns one page of jobs, shard by shard. Within a shard, jobs of the same state are sorted
// by time. The cost of a page does not depend on the length of the queue: List ends a page after a
// few reads that find no job in the requested state. A page may therefore be short or empty
// although a further page follows. A job whose state changes between two pages may be listed twice
// or not at all. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) List(ctx context.Context, queue string, o ListOptions) (Page, error) {
	if err := checkQueue(queue); err != nil {
		return Page{}, err
	}
	if err := o.normalize(); err != nil {
		return Page{}, err
	}
	at, err := parseCursor(o.Cursor)
	if err != nil {
		return Page{}, err
	}
	shards, err := q.allShards(ctx)
	if err != nil {
		return Page{}, err
	}

	var page Page
	for emptyReads := 0; at.shard < shards; {
		sets := setsOf(placeOf(queue, at.shard), o.State)
		if at.set >= len(sets) {
			at = cursor{shard: at.shard + 1, from: first}
			continue
		}
		found, more, err := q.listSet(ctx, queue, sets[at.set], o.State, o.Limit-len(page.Jobs), &at)
		if err != nil {
			return Page{}, err
		}
		page.Jobs = append(page.Jobs, found...)
		if more && len(found) == 0 {
			emptyReads++
		}
		if len(page.Jobs) == o.Limit || emptyReads == maxEmptyReads {
			page.NextCursor = at.String()
			return page, nil
		}
		if !more {
			at = cursor{shard: at.shard, set: at.set + 1, from: first}
		}
	}
	return page, nil
}

// setsOf returns the sorted sets that contain the jobs of a state.
func setsOf(p place, state State) []string {
	switch state {
	case Scheduled:
		return []string{p.due}
	case Dispatching:
		return []string{p.leased}
	case AwaitingAck:
		return []string{p.awaiting}
	case Dead:
		return []string{p.dead}
	case "":
		return []string{p.due, p.leased, p.awaiting, p.dead, p.done}
	default:
		return []string{p.done}
	}
}

// listSet reads the next members of one set and returns up to limit jobs in the requested state. It
// advances the cursor past the members that it has read. The result more reports whether the set
// may have further members.
func (q *Queues) listSet(ctx context.Context, queue, set string, state State, limit int,
	at *cursor) (found []Info, more bool, err error) {
	count := limit
	if sharesSet(state) {
		count = MaxPage
	}
	members, records, err := q.readSet(ctx, queue, set, count, *at)
	if err != nil {
		return nil, false, err
	}

	for i, m := range members {
		at.pass(m.Score)
		record, exists := records[i].(string)
		if !exists {
			continue
		}
		_, info, err := q.codec.decode(fmt.Sprint(m.Member), record)
		if err != nil {
			return nil, false, err
		}
		if state != "" && info.State != state {
			continue
		}
		if found = append(found, info); len(found) == limit {
			return found, true, nil
		}
	}
	return found, len(members) == count, nil
}

// readSet reads up to count members of a set, from the cursor on, and their records.
func (q *Queues) readSet(ctx context.Context, queue, set string, count int,
	at cursor) (members []redis.Z, records []any, err error) {
	err = q.conn.Do(ctx, func(ctx context.Context) error {
		client := q.conn.Client()
		var err error
		members, err = client.ZRangeByScoreWithScores(ctx, set,
			&redis.ZRangeBy{Min: at.from, Max: "+inf", Offset: at.skip, Count: int64(count)}).Result()
		if err != nil || len(members) == 0 {
			return err
		}
		ids := make([]string, len(members))
		for i, m := range members {
			ids[i] = fmt.Sprint(m.Member)
		}
		records, err = client.HMGet(ctx, placeOf(queue, at.shard).jobs, ids...).Result()
		return err
	})
	return members, records, err
}

// sharesSet reports whether the set that contains the jobs in state s also contains jobs in other
// states.
func sharesSet(s State) bool {
	return s == Dispatched || s == Succeeded || s == Canceled || s == Expired
}
