package delayqueue

import (
	"errors"
	"strconv"
	"strings"
)

// header is the first line of a record; see record.go.
type header struct {
	state        State
	attempt      int
	maxAttempts  int
	runAtMS      int64
	claims       int64
	expiresAtMS  int64 // 0 if the job never expires
	dispatchedMS int64 // 0 if SQS has accepted no attempt
	redrives     int
	durable      bool
	trace        string
}

// stateOf returns the state that a letter in a header encodes.
func stateOf(letter string) (state State, valid bool) {
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
	parts := strings.Split(line, " ")
	if len(parts) < 5 {
		return header{}, errors.New("a job's header has fewer than five fields")
	}
	state, valid := stateOf(parts[0])
	numbers := make([]int64, 4)
	for i := range numbers {
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		valid = valid && err == nil
		numbers[i] = n
	}
	if !valid {
		return header{}, errors.New("a job's header is malformed")
	}

	h := header{
		state:       state,
		attempt:     int(numbers[0]),
		maxAttempts: int(numbers[1]),
		runAtMS:     numbers[2],
		claims:      numbers[3],
	}
	for _, option := range parts[5:] {
		h.parseOption(option)
	}
	return h, nil
}

// parseOption parses one option. It skips options that only the scripts use.
func (h *header) parseOption(option string) {
	switch {
	case strings.HasPrefix(option, "x"):
		h.expiresAtMS, _ = strconv.ParseInt(option[1:], 10, 64)
	case strings.HasPrefix(option, "t"):
		h.dispatchedMS, _ = strconv.ParseInt(option[1:], 10, 64)
	case strings.HasPrefix(option, "r"):
		h.redrives, _ = strconv.Atoi(option[1:])
	case strings.HasPrefix(option, "T"):
		h.trace = option[1:]
	case option == "D":
		h.durable = true
	}
}

// info returns an Info with the fields that the header contains.
func (h *header) info(id string) Info {
	return Info{
		ID:           id,
		State:        h.state,
		RunAt:        fromUnixMS(h.runAtMS),
		DispatchedAt: fromOptionalUnixMS(h.dispatchedMS),
		Attempt:      h.attempt,
		MaxAttempts:  h.maxAttempts,
		ExpiresAt:    fromOptionalUnixMS(h.expiresAtMS),
		Durable:      h.durable,
	}
}
