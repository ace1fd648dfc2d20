package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/dispatch"
)

const (
	// claimMargin is how long before the function's deadline the dispatcher claims no more jobs. It
	// is the time for the claims in flight.
	claimMargin = 6 * time.Second
	// answerMargin is how long before the deadline the work ends, so that the function can answer.
	answerMargin = 500 * time.Millisecond
)

// handler runs the dispatcher once per invocation.
type handler struct {
	dispatcher  *dispatch.Dispatcher
	terminating context.Context // ends on SIGTERM
	runs        sync.WaitGroup
}

// handle ignores the content of the event. After a SIGTERM it claims no more jobs, finishes those
// in flight and returns.
func (h *handler) handle(ctx context.Context, _ json.RawMessage) (dispatch.Summary, error) {
	h.runs.Add(1)
	defer h.runs.Done()

	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Hour)
	}
	work, cancelWork := context.WithDeadline(ctx, deadline.Add(-answerMargin))
	defer cancelWork()
	claiming, cancelClaiming := context.WithDeadline(work, deadline.Add(-claimMargin))
	defer cancelClaiming()
	defer context.AfterFunc(h.terminating, cancelClaiming)() //nolint:contextcheck // SIGTERM ends every invocation

	return h.dispatcher.Run(work, claiming), nil //nolint:contextcheck // both are the invocation's
}
