package delayqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/sluicehq/sluice/shared/instant"
)

// A job's record is text in four parts, so that scripts read its first line only and one hash field
// holds all of it:
//
//	<state> <attempt> <max attempts> <run_at ms> <claims>[ a<ack timeout ms>][ b<backoff>][ x<expires ms>][ t<dispatched ms>][ u<leases that lapsed in a row>]
//	  [ r<redrives>][ D when the outbox has it too][ T<traceparent>]
//	<last error>
//	<JSON of group and headers, or nothing>
//	<payload: JSON, or 0x01 and zstd>
const compressed = 0x01

// compressOver is the payload size in bytes from which compression is tried.
const compressOver = 1024

// extra is what scripts never look at. With the payload it is a job's content: an id that is known
// with the same content is the same job, whatever trace the request belonged to.
type extra struct {
	Group   string            `json:"g,omitempty"`
	Headers map[string]string `json:"h,omitempty"`
}

// codec turns jobs into records and back. It is safe for concurrent use.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newCodec() (*codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("error making the compressor: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*MaxPayload))
	if err != nil {
		return nil, fmt.Errorf("error making the decompressor: %w", err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

// appendOptions appends the parts of the header that a job has only when it needs them.
func (j *Job) appendOptions(b []byte) []byte {
	if j.MaxAttempts > 1 {
		if j.AckTimeout > 0 {
			b = strconv.AppendInt(append(b, " a"...), instant.CeilMilliseconds(j.AckTimeout), 10)
		}
		jitter := ",0"
		if j.Backoff.Jitter {
			jitter = ",1"
		}
		b = strconv.AppendInt(append(b, " b"...), instant.CeilMilliseconds(j.Backoff.Initial), 10)
		b = strconv.AppendInt(append(b, ','), instant.CeilMilliseconds(j.Backoff.Max), 10)
		b = strconv.AppendInt(append(b, ','), j.Backoff.thousandths(), 10)
		b = append(b, jitter...)
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

// appendContent appends the last two parts of a record.
func (c *codec) appendContent(b []byte, j *Job) ([]byte, error) {
	if j.Group != "" || len(j.Headers) > 0 {
		encoded, err := json.Marshal(extra{Group: j.Group, Headers: j.Headers})
		if err != nil {
			return nil, fmt.Errorf("error encoding a job: %w", err)
		}
		b = append(b, encoded...)
	}
	return c.appendPacked(append(b, '\n'), j.Payload), nil
}

func (c *codec) pack(payload []byte) string { return string(c.appendPacked(nil, payload)) }

func (c *codec) appendPacked(b, payload []byte) []byte {
	if len(payload) > compressOver {
		if packed := c.encoder.EncodeAll(payload, []byte{compressed}); len(packed) < len(payload) {
			return append(b, packed...)
		}
	}
	return append(b, payload...)
}

// fresh is the record of a job that has not been tried, from behind its due time.
func (c *codec) fresh(j *Job) ([]byte, error) {
	b := make([]byte, 0, len(j.Payload)+64)
	return c.appendContent(append(j.appendOptions(append(b, " 0"...)), "\n\n"...), j)
}

func (c *codec) unpack(stored string) (json.RawMessage, error) {
	if stored == "" || stored[0] != compressed {
		return json.RawMessage(stored), nil
	}
	payload, err := c.decoder.DecodeAll([]byte(stored[1:]), nil)
	if err != nil {
		return nil, fmt.Errorf("error decompressing a payload: %w", err)
	}
	return payload, nil
}

// header is a record's first line.
type header struct {
	state       State
	attempt     int
	maxAttempts int
	runAtMS     int64
	claims      int64
	expiresMS   int64
	sentMS      int64
	redrives    int
	durable     bool
	trace       string
}

func (h *header) runAt() time.Time     { return fromUnixMS(h.runAtMS) }
func (h *header) sentAt() time.Time    { return fromOptionalUnixMS(h.sentMS) }
func (h *header) expiresAt() time.Time { return fromOptionalUnixMS(h.expiresMS) }

func stateOf(letter string) (State, bool) {
	switch letter {
	case "s":
		return Scheduled, true
	case "g":
		return Dispatching, true
	case "d":
		return Dispatched, true
	case "w":
		return AwaitingAck, true
	case "k":
		return Succeeded, true
	case "c":
		return Canceled, true
	case "x":
		return Expired, true
	case "z":
		return Dead, true
	default:
		return "", false
	}
}

func parseHeader(line string) (header, error) {
	var h header
	parts := strings.Split(line, " ")
	if len(parts) < 5 {
		return h, errors.New("a job's header is too short")
	}
	state, ok := stateOf(parts[0])
	numbers := make([]int64, 4)
	for i := range numbers {
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil {
			ok = false
		}
		numbers[i] = n
	}
	if !ok {
		return h, errors.New("a job's header is not readable")
	}
	h = header{state: state, attempt: int(numbers[0]), maxAttempts: int(numbers[1]), runAtMS: numbers[2],
		claims: numbers[3]}
	for _, option := range parts[5:] {
		switch {
		case strings.HasPrefix(option, "x"):
			h.expiresMS, _ = strconv.ParseInt(option[1:], 10, 64)
		case strings.HasPrefix(option, "t"):
			h.sentMS, _ = strconv.ParseInt(option[1:], 10, 64)
		case strings.HasPrefix(option, "r"):
			h.redrives, _ = strconv.Atoi(option[1:])
		case strings.HasPrefix(option, "T"):
			h.trace = option[1:]
		case option == "D":
			h.durable = true
		}
	}
	return h, nil
}

// decode reads a whole record.
func (c *codec) decode(id, record string) (header, Info, extra, error) {
	parts := strings.SplitN(record, "\n", 4)
	if len(parts) != 4 {
		return header{}, Info{}, extra{}, errors.New("a job's record is too short")
	}
	h, err := parseHeader(parts[0])
	if err != nil {
		return header{}, Info{}, extra{}, err
	}
	var e extra
	if parts[2] != "" {
		if err := json.Unmarshal([]byte(parts[2]), &e); err != nil {
			return header{}, Info{}, extra{}, fmt.Errorf("error decoding a job: %w", err)
		}
	}
	payload, err := c.unpack(parts[3])
	if err != nil {
		return header{}, Info{}, extra{}, err
	}
	return h, Info{
		ID: id, State: h.state, RunAt: h.runAt(), DispatchedAt: h.sentAt(), Attempt: h.attempt,
		MaxAttempts: h.maxAttempts,
		LastError:   parts[1], Payload: payload, Group: e.Group, Headers: e.Headers, ExpiresAt: h.expiresAt(),
		Durable: h.durable,
	}, e, nil
}

// oneLine makes an error's text fit for a record.
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
