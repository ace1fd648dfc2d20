package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/dispatch"
)

const (
	// claimMargin is the time before the function's deadline at which the dispatcher stops claiming
	// jobs. It leaves time to finish the jobs in flight.
	claimMargin = 6 * time.Second
	// answerMargin is the time before the function's deadline at which all work stops, to leave
	// time for the answer.
	answerMargin = 500 * time.Millisecond
)

// handler runs the dispatcher once per invocation.
type handler struct {
	dispatcher  *dispatch.Dispatcher
	terminating context.Context // canceled on SIGTERM
	runs        sync.WaitGroup
}

// handle runs the dispatcher until a newer run takes over or the function's deadline approaches. It
// ignores the content of the event. After a SIGTERM it stops claiming, finishes the jobs in flight
// and returns.
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

	return h.dispatcher.Run(work, claiming), nil //nolint:contextcheck // both derive from ctx
}
