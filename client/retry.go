package client

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"time"
)

// retryPolicy selects the failures after which a call is retried.
type retryPolicy int

const (
	// retryIdempotent is for idempotent calls.
	retryIdempotent retryPolicy = iota
	// retryAvailable is like retryIdempotent, but does not retry the error store_unavailable. It is
	// for callers that do not want to wait until the store is available.
	retryAvailable
	// retryUnsent is for calls that are not idempotent. They are retried only if the request
	// certainly never reached the API.
	retryUnsent
)

func (p retryPolicy) allows(e *Error) bool {
	if e.RetryAfter > maxRetryAfter {
		return false
	}
	switch e.Code {
	case CodeThrottled: // the gateway did not invoke a function
		return true
	case CodeUnreachable:
		return !permanent(e.cause) && (p != retryUnsent || e.neverSent)
	case CodeUnavailable, CodeDeadlineExceeded:
		return p != retryUnsent
	case CodeStoreUnavailable:
		return p == retryIdempotent
	default:
		return false
	}
}

// uncertain reports whether the API may have carried out the call despite the error.
func (e *Error) uncertain() bool {
	switch e.Code {
	case CodeUnreachable:
		return !e.neverSent
	case CodeUnavailable, CodeUnexpected, CodeDeadlineExceeded, CodeInternal, CodeStoreUnavailable:
		return true
	default:
		return false
	}
}

// neverSent reports whether err occurred before the connection was established.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// permanent reports whether a retry would fail in the same way.
func permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// maxRetryAfter is the longest Retry-After for which the client waits. If an error has a longer
	// Retry-After, the client returns the error to the caller.
	maxRetryAfter = 30 * time.Second
)

// backoff returns the wait before the next attempt: the Retry-After of the answer plus an
// exponential backoff with full jitter. The first failed attempt has the number 0.
//
// See https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
func backoff(attempt int, retryAfter time.Duration) time.Duration {
	most := min(maxBackoff, firstBackoff<<min(attempt, 10))
	return retryAfter + rand.N(most)
}

// pause waits for d and returns true. If ctx ends earlier, it returns false. If the deadline of ctx
// is less than d away, it returns false immediately.
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
