package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

// duration is a flag value such as 90s, 5m or 2d.
type duration time.Duration

// Set implements pflag.Value.
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

// String implements pflag.Value.
func (d *duration) String() string { return human.Duration(time.Duration(*d)) }

// Type implements pflag.Value. The help shows it in place of the value.
func (d *duration) Type() string { return "duration" }

// instant is a flag value for a time: RFC 3339, or a duration from now.
type instant struct{ time.Time }

// Set implements pflag.Value.
func (i *instant) Set(text string) error {
	if d, err := human.ParseDuration(text); err == nil {
		i.Time = time.Now().Add(d)
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return errors.New("must be a time such as 2026-01-02T15:04:05Z, or a duration from now such as 5m")
	}
	i.Time = t
	return nil
}

// String implements pflag.Value.
func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339)
}

// Type implements pflag.Value. The help shows it in place of the value.
func (i *instant) Type() string { return "time" }

// headers is the value of a flag that can be repeated, each time as name=value. The value may
// contain commas and equals signs.
type headers map[string]string

// Set implements pflag.Value. It adds one header.
func (h *headers) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return errors.New("must be name=value")
	}
	if *h == nil {
		*h = make(headers)
	}
	(*h)[name] = value
	return nil
}

// String implements pflag.Value.
func (h *headers) String() string { return "" }

// Type implements pflag.Value. The help shows it in place of the value.
func (h *headers) Type() string { return "name=value" }

// maxInput is the maximum size of standard input, in bytes. The limits of the API are lower.
const maxInput = 64 << 20

// readAll reads standard input to its end.
func (a *app) readAll() ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(a.Stdin, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("error reading standard input: %w", err)
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("standard input exceeds %d bytes", maxInput)
	}
	return text, nil
}
