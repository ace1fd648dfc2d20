package main

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
)

type queueBody struct {
	Name        string `json:"name"`
	Scheduled   int64  `json:"scheduled"`
	Due         int64  `json:"due"`
	Dispatching int64  `json:"dispatching"`
	AwaitingAck int64  `json:"awaiting_ack"`
	Dead        int64  `json:"dead"`
	Outbox      *int64 `json:"outbox"` // null if DynamoDB is unavailable
	OldestDueMS int64  `json:"oldest_due_ms"`
	Paused      bool   `json:"paused"`
}

func (a *api) stats(ctx context.Context, queue string) (queueBody, error) {
	s, err := a.jobs.Stats(ctx, queue)
	if err != nil {
		return queueBody{}, err
	}
	return queueBody{
		Name: queue, Scheduled: s.Scheduled, Due: s.Due, Dispatching: s.Dispatching, AwaitingAck: s.AwaitingAck,
		Dead: s.Dead, Outbox: s.Outbox, OldestDueMS: s.OldestDue.Milliseconds(), Paused: s.Paused,
	}, nil
}

func (a *api) listQueues(w http.ResponseWriter, r *http.Request) error {
	if _, err := httpapi.Query(r); err != nil {
		return err
	}
	queues := make([]queueBody, 0, len(a.urls))
	for _, name := range slices.Sorted(maps.Keys(a.urls)) {
		b, err := a.stats(r.Context(), name)
		if err != nil {
			return err
		}
		queues = append(queues, b)
	}
	return httpapi.Write(w, http.StatusOK, map[string]any{"queues": queues})
}

func (a *api) getQueue(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	return a.writeQueue(w, r, queue)
}

func (a *api) writeQueue(w http.ResponseWriter, r *http.Request, queue string) error {
	b, err := a.stats(r.Context(), queue)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, b)
}

func (a *api) pause(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	var body struct {
		Until *string `json:"until"`
	}
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	var f fault.Fields
	until := parseInstant(&f, "until", body.Until)
	if err := f.Err(); err != nil {
		return err
	}
	if err := a.jobs.Pause(r.Context(), queue, until); err != nil {
		return err
	}
	return a.writeQueue(w, r, queue)
}

func (a *api) resume(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	if err := httpapi.Decode(r, &struct{}{}); err != nil {
		return err
	}
	if err := a.jobs.Resume(r.Context(), queue); err != nil {
		return err
	}
	return a.writeQueue(w, r, queue)
}

func (a *api) redrive(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	var body struct {
		Limit *int     `json:"limit"`
		IDs   []string `json:"ids"`
	}
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	moved, err := a.jobs.Redrive(r.Context(), queue,
		delayqueue.RedriveOptions{IDs: body.IDs, Limit: explicit(body.Limit)})
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, map[string]int64{"moved": moved})
}
