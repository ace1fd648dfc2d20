package main

import (
	"log/slog"
	"net/http"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// api converts HTTP requests to calls to [jobs.Service], and the results to HTTP responses.
type api struct {
	jobs    *jobs.Service
	urls    map[string]string // SQS URLs by queue
	log     *slog.Logger
	metrics *telemetry.Metrics
}

func (a *api) routes() *httpapi.API {
	router := httpapi.New(a.log, a.metrics)
	router.Handle("POST /v1/queues/{queue}/jobs", a.enqueue)
	router.Handle("GET /v1/queues/{queue}/jobs", a.list)
	router.Handle("POST /v1/queues/{queue}/jobs/batch", a.enqueueBatch)
	router.Handle("GET /v1/queues/{queue}/jobs/{id}", a.get)
	router.Handle("PATCH /v1/queues/{queue}/jobs/{id}", a.reschedule)
	router.Handle("DELETE /v1/queues/{queue}/jobs/{id}", a.cancel)
	router.Handle("POST /v1/queues/{queue}/jobs/{id}/ack", a.ack)
	router.Handle("POST /v1/queues/{queue}/jobs/{id}/nack", a.nack)
	router.Handle("GET /v1/queues", a.listQueues)
	router.Handle("GET /v1/queues/{queue}", a.getQueue)
	router.Handle("POST /v1/queues/{queue}/pause", a.pause)
	router.Handle("POST /v1/queues/{queue}/resume", a.resume)
	router.Handle("POST /v1/queues/{queue}/redrive", a.redrive)
	return router
}

// queue reads the queue from the path. Errors: queue_not_found if the deployment does not have this
// queue.
func (a *api) queue(r *http.Request) (string, error) {
	name := r.PathValue("queue")
	if !fault.ValidName(name) {
		return "", fault.Invalid("queue", fault.NameMessage)
	}
	if a.urls[name] == "" {
		return "", fault.New(fault.QueueNotFound, "this deployment has no queue %q", name)
	}
	return name, nil
}

// job reads the queue and the job's ID from the path.
func (a *api) job(r *http.Request) (queue, id string, err error) {
	if queue, err = a.queue(r); err != nil {
		return "", "", err
	}
	id = r.PathValue("id")
	if !fault.ValidName(id) {
		return "", "", fault.Invalid("id", fault.NameMessage)
	}
	return queue, id, nil
}
