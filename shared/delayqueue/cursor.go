package delayqueue

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/shared/fault"
)

// first is the minimum score of a sorted set, in the syntax of ZRANGEBYSCORE.
const first = "-inf"

// cursor is the position at which the next page of a listing starts: a shard, a set of this shard,
// a score, and the number of members with this score to skip.
type cursor struct {
	shard, set int
	from       string
	skip       int64
}

// pass moves the cursor past one member with the given score.
func (c *cursor) pass(score float64) {
	text := strconv.FormatFloat(score, 'f', 0, 64)
	if text != c.from {
		c.from, c.skip = text, 0
	}
	c.skip++
}

// String encodes the cursor as an opaque text for the caller.
func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d.%s.%d", c.shard, c.set, c.from, c.skip))
}

func parseCursor(encoded string) (cursor, error) {
	if encoded == "" {
		return cursor{from: first}, nil
	}
	invalid := fault.Invalid("cursor", "is not a next_cursor that this API returned")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	parts := strings.Split(string(text), ".")
	if err != nil || len(parts) != 4 {
		return cursor{}, invalid
	}

	numbers := make([]int64, len(parts))
	for i, part := range parts {
		if i == 2 && part == first {
			continue
		}
		if numbers[i], err = strconv.ParseInt(part, 10, 64); err != nil || numbers[i] < 0 {
			return cursor{}, invalid
		}
	}
	shard, set := numbers[0], numbers[1]
	if shard > MaxShards || set > 4 {
		return cursor{}, invalid
	}
	return cursor{shard: int(shard), set: int(set), from: parts[2], skip: numbers[3]}, nil
}
