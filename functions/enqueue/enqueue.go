package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
)

// degradedOutbox is the value of Sluice-Degraded when a job was taken in without Redis.
const degradedOutbox = "enqueue-outbox"

// traceparent is a W3C trace context (https://www.w3.org/TR/trace-context/), version 00.
var traceparent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

type enqueuedBody struct {
	ID        string           `json:"id"`
	Queue     string           `json:"queue"`
	State     delayqueue.State `json:"state"`
	RunAt     string           `json:"run_at"`
	Attempt   int              `json:"attempt"`
	Duplicate bool             `json:"duplicate"`
	// the job that is known by this id is another one
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
	if err := body.tooLarge(); err != nil {
		return err
	}
	var f fault.Fields
	body.identify(&f, r)
	job := body.parse(&f, a.fifo(queue))
	if err := f.Err(); err != nil {
		return err
	}
	job.Trace = trace(r)
	results, errs, degraded := a.take(r.Context(), queue, []delayqueue.Job{job})
	if errs[0] != nil {
		return errs[0]
	}
	if degraded {
		httpapi.Degraded(w, degradedOutbox)
	}
	status := http.StatusAccepted
	if results[0].Duplicate {
		status = http.StatusOK
	}
	return httpapi.Write(w, status, enqueuedOf(queue, results[0]))
}

func (a *api) fifo(queue string) bool { return strings.HasSuffix(a.urls[queue], ".fifo") }

func trace(r *http.Request) string {
	if t := r.Header.Get("traceparent"); traceparent.MatchString(t) {
		return t
	}
	return ""
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
		return fault.Invalid("jobs", "must be 1 to %d", delayqueue.MaxBatch)
	}
	results := make([]any, len(body.Jobs))
	var jobs []delayqueue.Job
	var at []int
	for i := range body.Jobs {
		job, err := a.parseOne(queue, &body.Jobs[i])
		if err != nil {
			results[i] = problem(r.Context(), err)
			continue
		}
		job.Trace = trace(r)
		jobs, at = append(jobs, job), append(at, i)
	}
	enqueued, errs, degraded := a.take(r.Context(), queue, jobs)
	for k, i := range at {
		if errs[k] != nil {
			results[i] = problem(r.Context(), errs[k])
			continue
		}
		results[i] = enqueuedOf(queue, enqueued[k])
	}
	if degraded {
		httpapi.Degraded(w, degradedOutbox)
	}
	return httpapi.Write(w, http.StatusOK, map[string]any{"results": results})
}

func (a *api) parseOne(queue string, body *newJob) (delayqueue.Job, error) {
	if err := body.tooLarge(); err != nil {
		return delayqueue.Job{}, err
	}
	var f fault.Fields
	job := body.parse(&f, a.fifo(queue))
	return job, f.Err()
}

func problem(ctx context.Context, err error) map[string]any {
	return map[string]any{"error": httpapi.ProblemOf(err, httpapi.RequestID(ctx))}
}
