package main

import (
	"context"
	"net/http"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// degradedOutbox is the value of the header Sluice-Degraded if the outbox accepted a job and Redis
// did not.
const degradedOutbox = "enqueue-outbox"

type enqueuedBody struct {
	ID        string           `json:"id"`
	Queue     string           `json:"queue"`
	State     delayqueue.State `json:"state"`
	RunAt     string           `json:"run_at"`
	Attempt   int              `json:"attempt"`
	Duplicate bool             `json:"duplicate"`
	// PayloadDiffers reports that the existing job with this ID has a different payload, group or
	// headers.
	PayloadDiffers bool `json:"payload_differs,omitempty"`
}

func enqueuedOf(queue string, e delayqueue.Enqueued) enqueuedBody {
	return enqueuedBody{
		ID: e.ID, Queue: queue, State: e.State, RunAt: instant.Format(e.RunAt), Attempt: e.Attempt,
		Duplicate: e.Duplicate, PayloadDiffers: e.Differs,
	}
}

func (a *api) enqueue(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	var body newJob
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	var f fault.Fields
	body.identify(&f, r)
	job, err := body.parse(f, a.queueType(queue), r.Header.Get("traceparent"))
	if err != nil {
		return err
	}

	result := a.store(r.Context(), w, queue, []delayqueue.Job{job})[0]
	if result.Err != nil {
		return result.Err
	}
	status := http.StatusAccepted
	if result.Enqueued.Duplicate {
		status = http.StatusOK
	}
	return httpapi.Write(w, status, enqueuedOf(queue, result.Enqueued))
}

// store enqueues jobs and emits the metrics. If the outbox accepted a job because Redis did not,
// store sets the header Sluice-Degraded.
func (a *api) store(ctx context.Context, w http.ResponseWriter, queue string, list []delayqueue.Job) []jobs.Result {
	results := a.jobs.Enqueue(ctx, queue, list)
	enqueued, degraded := 0, false
	for _, r := range results {
		if r.Err == nil && !r.Enqueued.Duplicate {
			enqueued++
		}
		degraded = degraded || r.Degraded
	}

	metrics := []telemetry.Metric{telemetry.One("enqueued", telemetry.Count, float64(enqueued))}
	if degraded {
		metrics = append(metrics, telemetry.One("degraded", telemetry.Count, 1))
		httpapi.Degraded(w, degradedOutbox)
	}
	a.metrics.Emit(map[string]string{"queue": queue}, metrics...)
	return results
}

func (a *api) queueType(queue string) delayqueue.QueueType {
	return delayqueue.QueueTypeOf(a.urls[queue])
}

type batchBody struct {
	Jobs []newJob `json:"jobs"`
}

func (a *api) enqueueBatch(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	var body batchBody
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	if len(body.Jobs) < 1 || len(body.Jobs) > delayqueue.MaxBatch {
		return fault.Invalid("jobs", "must have 1 to %d entries", delayqueue.MaxBatch)
	}

	entries := make([]jobs.Result, len(body.Jobs))
	var valid []*jobs.Result
	var list []delayqueue.Job
	for i := range entries {
		e := &entries[i]
		e.Job, e.Err = body.Jobs[i].parse(nil, a.queueType(queue), r.Header.Get("traceparent"))
		if e.Err == nil {
			valid, list = append(valid, e), append(list, e.Job)
		}
	}
	for i, result := range a.store(r.Context(), w, queue, list) {
		*valid[i] = result
	}

	results := make([]any, len(entries))
	for i, e := range entries {
		results[i] = entryOf(r.Context(), queue, e)
	}
	return httpapi.Write(w, http.StatusOK, map[string]any{"results": results})
}

// entryOf returns the JSON form of one job's result, for the answer to a batch.
func entryOf(ctx context.Context, queue string, r jobs.Result) any {
	if r.Err != nil {
		return map[string]any{"error": httpapi.ProblemOf(r.Err, httpapi.RequestID(ctx))}
	}
	return enqueuedOf(queue, r.Enqueued)
}
