package delayqueue

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/shared/fault"
)

// first is the score before all others.
const first = "-inf"

// cursor is where the next page of a listing starts: in a set of a shard, at the score from, after
// skip members of that score.
type cursor struct {
	shard, set int
	from       string
	skip       int64
}

// pass moves the cursor past the next member, whose score is given.
func (c *cursor) pass(score float64) {
	text := strconv.FormatFloat(score, 'f', 0, 64)
	if text != c.from {
		c.from, c.skip = text, 0
	}
	c.skip++
}

// String formats the cursor for the caller, to whom it is opaque.
func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d.%s.%d", c.shard, c.set, c.from, c.skip))
}

func parseCursor(encoded string) (cursor, error) {
	if encoded == "" {
		return cursor{from: first}, nil
	}
	invalid := fault.Invalid("cursor", "is not a cursor of this listing")
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
