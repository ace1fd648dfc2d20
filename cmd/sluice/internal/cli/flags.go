package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

// duration is a flag as people write durations: 90s, 5m, 2d.
type duration time.Duration

func (d *duration) Set(text string) error {
	parsed, err := human.ParseDuration(text)
	if err != nil {
		return err
	}
	if parsed < 0 {
		return errors.New("must not be negative")
	}
	*d = duration(parsed)
	return nil
}

func (d *duration) String() string { return human.Duration(time.Duration(*d)) }

// Type names the value in the help.
func (d *duration) Type() string { return "duration" }

// instant is a flag for a moment: RFC 3339, or a duration from now.
type instant struct{ time.Time }

func (i *instant) Set(text string) error {
	if d, err := human.ParseDuration(text); err == nil {
		i.Time = time.Now().Add(d)
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return errors.New("must be an instant such as 2026-01-02T15:04:05Z, or a duration from now such as 5m")
	}
	i.Time = t
	return nil
}

func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339)
}

// Type names the value in the help.
func (i *instant) Type() string { return "instant" }

// maxInput bounds what is read from a file or standard input, in bytes; the API takes less.
const maxInput = 64 << 20

// readAll reads standard input to its end.
func (a *app) readAll() ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(a.Stdin, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("error reading standard input: %w", err)
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("standard input is over %d bytes", maxInput)
	}
	return text, nil
}
