package report

import (
	"fmt"
	"strings"
)

// The README holds the headlines between these marks.
const (
	headlineBegin = "<!-- headlines: written by make bench -->"
	headlineEnd   = "<!-- end of headlines -->"
)

// headline selects a row for the README, and describes its measurement in words.
type headline struct {
	id, work, against string
	words             string
}

func headlines() []headline {
	return []headline{
		{"P2", "release → next holder, p50", "redislock",
			"A released lock reaches the next waiter (p50); redislock polls"},
		{"P10", "lateness at 1000 jobs/s, p99", "asynq",
			"A job reaches SQS after its due time, at 1 000 jobs a second (p99); asynq polls"},
		{"P4", "check, three rules", "redis_rate ×3",
			"Checks of three rules in one atomic decision; three redis_rate calls are not atomic"},
		{"P6", "bytes for each admitted request, limit 1000", "ZSET log",
			"Memory per admitted request of an exact sliding window; a sorted set in a script"},
	}
}

// Headlines renders the rows that the README shows, as a Markdown table. It omits rows that were
// not measured.
func Headlines(rows []Row) string {
	var b strings.Builder
	b.WriteString("| | Sluice | peer | ratio |\n| --- | --- | --- | --- |\n")
	for _, h := range headlines() {
		for _, r := range rows {
			if r.ID == h.id && r.Work == h.work && r.Against == h.against {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", h.words, r.Ours, r.Theirs, r.advantage())
			}
		}
	}
	return b.String()
}

// advantage returns the row's ratio as text, such as "3.00×". If the row's value is a quantity
// instead of a ratio, advantage divides Theirs by Ours: "500× sooner".
func (r Row) advantage() string {
	if r.Unit == "" {
		return r.quantity(r.Value)
	}
	var ours, theirs float64
	if _, err := fmt.Sscanf(r.Ours+" "+r.Theirs, "%f "+r.Unit+" %f "+r.Unit, &ours, &theirs); err != nil || ours == 0 {
		return r.quantity(r.Value)
	}
	return fmt.Sprintf("%.0f× sooner", theirs/ours)
}

// ReplaceHeadlines returns the README with its table of headlines replaced. It fails if the README
// has no marks.
func ReplaceHeadlines(readme string, rows []Row) (string, error) {
	before, rest, found := strings.Cut(readme, headlineBegin)
	_, after, ended := strings.Cut(rest, headlineEnd)
	if !found || !ended {
		return "", fmt.Errorf("the README lacks the line %q or %q", headlineBegin, headlineEnd)
	}
	return before + headlineBegin + "\n\n" + Headlines(rows) + "\n" + headlineEnd + after, nil
}
