package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDenied      = 3 // limit exceeded, lock held, or wrong state of a job or policy
	exitNotFound    = 4
	exitUnavailable = 5 // a retry may succeed
	exitInterrupted = 130
)

// usageError is the error of an invalid command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// codedError ends the process with its code. If err is nil, nothing is printed.
type codedError struct {
	code int
	err  error
}

// Error implements error.
func (e codedError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e codedError) Unwrap() error { return e.err }

// exit prints an error, and returns its exit code.
func (a *app) exit(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	if !a.running {
		err = usageError{fmt.Errorf("%w (see --help)", err)}
	}
	if text := lines(err); text != "" {
		prefix := table.Paint(a.colour(a.Stderr), table.Red, "sluice:")
		_, _ = fmt.Fprintf(a.Stderr, "%s %s\n", prefix, text)
	}
	return codeOf(ctx, err)
}

// lines formats an error as one line. An error with several invalid fields gets one more line for
// each field.
func lines(err error) string {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || len(e.Fields) < 2 {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "error %s: %s:", e.Op, e.Detail)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "\n  %s %s", f.Field, f.Message)
	}
	return b.String()
}

func codeOf(ctx context.Context, err error) int {
	if coded, ok := errors.AsType[codedError](err); ok {
		return coded.code
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	for _, kind := range []struct {
		code      int
		sentinels []error
	}{
		{exitUsage, []error{client.ErrInvalidRequest, client.ErrPayloadTooLarge}},
		{exitNotFound, []error{client.ErrNotFound}},
		{exitDenied, []error{
			client.ErrLockHeld, client.ErrLockNotHeld, client.ErrJobConflict, client.ErrPreconditionFailed,
			client.ErrQuotaExceeded,
		}},
		{exitUnavailable, []error{client.ErrStoreUnavailable, client.ErrUnreachable}},
	} {
		for _, sentinel := range kind.sentinels {
			if errors.Is(err, sentinel) {
				return kind.code
			}
		}
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitFailed
}
