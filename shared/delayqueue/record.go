package delayqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/shared/instant"
)

// A job's record is a text of four parts in one hash field. Scripts do not parse the JSON parts:
//
//	<header>
//	<last error>
//	<JSON of group and headers, or nothing>
//	<payload: JSON, or zstdMark and the JSON compressed by zstd>
//
// The header is
//
//	<state> <attempt> <max attempts> <run_at ms> <number of claims>
//
// and then the job's options, each after a space:
//
//	a<ack timeout ms>
//	b<initial ms>,<max ms>,<multiplier × 1000>,<1 with jitter, 0 without>
//	x<expires_at ms>
//	t<time in ms at which SQS accepted the latest attempt>
//	u<number of consecutive lapsed leases>
//	r<number of redrives>
//	D if the outbox also has the job
//	T<traceparent>

// attributes is the third part of a record. Together with the payload, it is the content of a job.
// [Enqueued.Differs] compares only the content.
type attributes struct {
	Group   string            `json:"g,omitempty"`
	Headers map[string]string `json:"h,omitempty"`
}

// appendRecord appends the part of a new job's record that follows the due time.
// scripts/enqueue.lua adds everything up to the due time.
func (c *codec) appendRecord(b []byte, j *Job) ([]byte, error) {
	return c.appendContent(append(j.appendOptions(append(b, " 0"...)), "\n\n"...), j)
}

// appendOptions appends the header options of a new job.
func (j *Job) appendOptions(b []byte) []byte {
	if j.MaxAttempts > 1 {
		if j.AckTimeout > 0 {
			b = strconv.AppendInt(append(b, " a"...), instant.CeilMilliseconds(j.AckTimeout), 10)
		}
		b = j.Backoff.appendOption(b)
	}
	if !j.ExpiresAt.IsZero() {
		b = strconv.AppendInt(append(b, " x"...), max(1, unixMS(j.ExpiresAt)), 10)
	}
	if j.Durable {
		b = append(b, " D"...)
	}
	if j.Trace != "" {
		b = append(append(b, " T"...), j.Trace...)
	}
	return b
}

func (b *Backoff) appendOption(to []byte) []byte {
	jitter := ",0"
	if b.Jitter {
		jitter = ",1"
	}
	to = strconv.AppendInt(append(to, " b"...), instant.CeilMilliseconds(b.Initial), 10)
	to = strconv.AppendInt(append(to, ','), instant.CeilMilliseconds(b.Max), 10)
	to = strconv.AppendInt(append(to, ','), b.thousandths(), 10)
	return append(to, jitter...)
}

// appendContent appends the last two parts of a record: the attributes and the payload.
func (c *codec) appendContent(b []byte, j *Job) ([]byte, error) {
	if j.Group != "" || len(j.Headers) > 0 {
		encoded, err := json.Marshal(attributes{Group: j.Group, Headers: j.Headers})
		if err != nil {
			return nil, fmt.Errorf("error encoding a job: %w", err)
		}
		b = append(b, encoded...)
	}
	return c.appendPacked(append(b, '\n'), j.Payload), nil
}

// decode parses a record.
func (c *codec) decode(id, record string) (header, Info, error) {
	parts := strings.SplitN(record, "\n", 4)
	if len(parts) != 4 {
		return header{}, Info{}, errors.New("a job's record has fewer than four parts")
	}
	h, err := parseHeader(parts[0])
	if err != nil {
		return header{}, Info{}, err
	}
	var a attributes
	if parts[2] != "" {
		if err := json.Unmarshal([]byte(parts[2]), &a); err != nil {
			return header{}, Info{}, fmt.Errorf("error decoding a job: %w", err)
		}
	}
	payload, err := c.unpack(parts[3])
	if err != nil {
		return header{}, Info{}, err
	}

	info := h.info(id)
	info.LastError, info.Payload, info.Group, info.Headers = parts[1], payload, a.Group, a.Headers
	return h, info, nil
}

// oneLine converts an error's text to the form in a record: one line of valid UTF-8, at most
// MaxError bytes long.
func oneLine(s string) string {
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s), "?")
	if len(s) > MaxError {
		s = strings.ToValidUTF8(s[:MaxError], "")
	}
	return s
}
