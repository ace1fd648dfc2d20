package delayqueue

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

// List reads a page of up to limit jobs in a state, or in any when that is "", from a cursor ("" at
// first). next is "" on the last page. The order is by shard, and in it by time. A page costs as
// much as it may hold; one of a state that few finished jobs are in may be short, or empty, before
// the last. Jobs that change their place while one pages may be seen twice or not at all.
func (q *Queues) List(ctx context.Context, queue string, state State, limit int,
	cursor string) (page []Info, next string, err error) {
	var f fault.Fields
	if state != "" && !state.Valid() {
		f.Add("state", "is not a state of a job")
	}
	if limit == 0 {
		limit = defaultPage
	}
	if limit < 1 || limit > MaxPage {
		f.Add("limit", "must be 1 to %d", MaxPage)
	}
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	at, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	shards, err := q.allShards(ctx)
	if err != nil {
		return nil, "", err
	}
	for fruitless := 0; at.shard < shards; {
		sets := setsOf(placeOf(queue, at.shard), state)
		for at.set < len(sets) {
			found, more, err := q.listSet(ctx, queue, sets[at.set], state, limit-len(page), &at)
			if err != nil {
				return nil, "", err
			}
			page = append(page, found...)
			if len(page) == limit {
				return page, at.String(), nil
			}
			if more && len(found) == 0 {
				fruitless++
			}
			if fruitless == maxFruitless {
				return page, at.String(), nil // few of many are in the state: the rest is for the next page
			}
			if !more {
				at = position{shard: at.shard, set: at.set + 1, from: "-inf"}
			}
		}
		at = position{shard: at.shard + 1, from: "-inf"}
	}
	return page, "", nil
}

// defaultPage is the default limit of a page.
const defaultPage = 50

// maxFruitless bounds how many pieces of the finished jobs one page looks through in vain.
const maxFruitless = 4

// setsOf are the sorted sets that hold jobs in a state.
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

// listSet reads the next piece of one set. It moves at on, also over jobs in another state.
func (q *Queues) listSet(ctx context.Context, queue, set string, state State, limit int,
	at *position) (found []Info, more bool, err error) {
	look := limit
	if finished(state) { // the set holds other states, too
		look = MaxPage
	}
	var members []redis.Z
	var records []any
	err = q.conn.Do(ctx, func(ctx context.Context) error {
		client := q.conn.Client()
		var err error
		members, err = client.ZRangeByScoreWithScores(ctx, set,
			&redis.ZRangeBy{Min: at.from, Max: "+inf", Offset: at.skip, Count: int64(look)}).Result()
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
	if err != nil {
		return nil, false, err
	}
	for i, m := range members {
		at.pass(m.Score)
		record, ok := records[i].(string)
		if !ok {
			continue
		}
		_, info, _, err := q.codec.decode(fmt.Sprint(m.Member), record)
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
	return found, len(members) == look, nil
}

// finished tells the states that share one set.
func finished(s State) bool {
	return s == Dispatched || s == Succeeded || s == Canceled || s == Expired
}

// position is where a listing goes on: after skip members of a score, in a set, in a shard.
type position struct {
	shard, set int
	from       string
	skip       int64
}

func (p *position) pass(score float64) {
	text := strconv.FormatFloat(score, 'f', 0, 64)
	if text != p.from {
		p.from, p.skip = text, 0
	}
	p.skip++
}

// String is the cursor.
func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d.%s.%d", p.shard, p.set, p.from, p.skip))
}

func parseCursor(cursor string) (position, error) {
	if cursor == "" {
		return position{from: "-inf"}, nil
	}
	bad := fault.Invalid("cursor", "is not a cursor of this listing")
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.Split(string(text), ".")
	if err != nil || len(parts) != 4 {
		return position{}, bad
	}
	numbers := make([]int64, 4)
	for i, part := range parts {
		if i == 2 && part == "-inf" {
			continue
		}
		if numbers[i], err = strconv.ParseInt(part, 10, 64); err != nil || numbers[i] < 0 {
			return position{}, bad
		}
	}
	if numbers[0] > MaxShards || numbers[1] > 4 {
		return position{}, bad
	}
	return position{shard: int(numbers[0]), set: int(numbers[1]), from: parts[2], skip: numbers[3]}, nil
}
