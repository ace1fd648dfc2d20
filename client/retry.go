package client

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"time"
)

// repeat says after which failures a call may be sent again.
type repeat int

const (
	// always is for what can be done twice with the effect of once.
	always repeat = iota
	// lost is the same, but takes "the store is unavailable" for an answer: who asked wants to know
	// at once.
	lost
	// unsent is for what must not be done twice: only what surely never arrived is sent again.
	unsent
)

func (p repeat) allows(e *Error) bool {
	if e.RetryAfter > maxRetryAfter {
		return false
	}
	switch e.Code {
	case CodeThrottled: // the gateway did not pass it on
		return true
	case CodeUnreachable:
		return !permanent(e.cause) && (p != unsent || e.unsent)
	case CodeUnavailable, CodeDeadlineExceeded:
		return p != unsent
	case CodeStoreUnavailable:
		return p == always
	default:
		return false
	}
}

// uncertain tells whether the call may have been carried out in spite of the error.
func (e *Error) uncertain() bool {
	switch e.Code {
	case CodeUnreachable:
		return !e.unsent
	case CodeUnavailable, CodeUnexpected, CodeDeadlineExceeded, CodeInternal, CodeStoreUnavailable:
		return true
	default:
		return false
	}
}

// neverSent recognizes a connection that was never made.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// permanent recognizes what will fail in the same way again.
func permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// maxRetryAfter is the longest Retry-After that is waited for; a longer one is the caller's to
	// plan with.
	maxRetryAfter = 30 * time.Second
)

// backoff is how long to wait after failure number attempt (from 0): exponential with full jitter,
// on top of what the answer asked for.
//
// See https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
func backoff(attempt int, retryAfter time.Duration) time.Duration {
	most := min(maxBackoff, firstBackoff<<min(attempt, 10))
	return retryAfter + rand.N(most)
}

// pause waits for d. It reports false, at once, when ctx ends before that would be over.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
