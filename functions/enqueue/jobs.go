package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
)

type jobBody struct {
	ID           string            `json:"id"`
	Queue        string            `json:"queue"`
	State        delayqueue.State  `json:"state"`
	RunAt        string            `json:"run_at"`
	DispatchedAt *string           `json:"dispatched_at"`
	Attempt      int               `json:"attempt"`
	MaxAttempts  int               `json:"max_attempts"`
	LastError    *string           `json:"last_error"`
	Payload      json.RawMessage   `json:"payload"`
	Group        string            `json:"group,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	ExpiresAt    string            `json:"expires_at,omitempty"`
}

func jobOf(queue string, i delayqueue.Info) jobBody {
	b := jobBody{
		ID: i.ID, Queue: queue, State: i.State, RunAt: instant.Format(i.RunAt), Attempt: i.Attempt,
		MaxAttempts: i.MaxAttempts, Payload: i.Payload,
		Group: i.Group, Headers: i.Headers,
	}
	if !i.DispatchedAt.IsZero() {
		at := instant.Format(i.DispatchedAt)
		b.DispatchedAt = &at
	}
	if i.LastError != "" {
		b.LastError = &i.LastError
	}
	if !i.ExpiresAt.IsZero() {
		b.ExpiresAt = instant.Format(i.ExpiresAt)
	}
	return b
}

func (a *api) get(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := a.job(r)
	if err != nil {
		return err
	}
	info, err := a.queues.Get(r.Context(), queue, id)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, jobOf(queue, info))
}

type changeBody struct {
	RunAt   *string         `json:"run_at"`
	DelayMS *int64          `json:"delay_ms"`
	Payload json.RawMessage `json:"payload"`
}

func (b *changeBody) parse() (delayqueue.Change, error) {
	var f fault.Fields
	c := delayqueue.Change{Payload: b.Payload}
	if b.RunAt == nil && b.DelayMS == nil && b.Payload == nil {
		f.Add("body", "must have run_at, delay_ms or payload")
	}
	if b.RunAt != nil && b.DelayMS != nil {
		f.Add("run_at", "excludes delay_ms: give one of them")
	}
	if b.RunAt != nil {
		c.RunAt = checkInstant(&f, "run_at", *b.RunAt)
	}
	if b.DelayMS != nil {
		delay := checkDelay(&f, "delay_ms", *b.DelayMS)
		c.Delay = &delay
	}
	checkText(&f, b.Payload)
	if err := checkPayload(b.Payload); err != nil {
		return c, err
	}
	return c, f.Err()
}

func (a *api) reschedule(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := a.job(r)
	if err != nil {
		return err
	}
	var body changeBody
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	change, err := body.parse()
	if err != nil {
		return err
	}
	changed, err := a.queues.Reschedule(r.Context(), queue, id, change)
	if err != nil {
		return err
	}
	if changed.Durable {
		if err := a.outbox.Change(r.Context(), queue, id, changed.RunAt, change.Payload); err != nil {
			return err
		}
	}
	info, err := a.queues.Get(r.Context(), queue, id)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, jobOf(queue, info))
}

// settledBody is a job's new state.
type settledBody struct {
	ID      string           `json:"id"`
	Queue   string           `json:"queue"`
	State   delayqueue.State `json:"state"`
	RunAt   string           `json:"run_at"`
	Attempt int              `json:"attempt"`
}

func settledOf(queue string, i delayqueue.Info) settledBody {
	return settledBody{ID: i.ID, Queue: queue, State: i.State, RunAt: instant.Format(i.RunAt), Attempt: i.Attempt}
}

func (a *api) cancel(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := a.job(r)
	if err != nil {
		return err
	}
	info, err := a.queues.Cancel(r.Context(), queue, id)
	if err != nil {
		return err
	}
	if info.Durable {
		if err := a.outbox.RemoveID(r.Context(), queue, id); err != nil {
			return err
		}
	}
	return httpapi.Write(w, http.StatusOK, settledOf(queue, info))
}

type ackBody struct {
	Attempt *int `json:"attempt"`
}

func (a *api) ack(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := a.job(r)
	if err != nil {
		return err
	}
	var body ackBody
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	var f fault.Fields
	attempt := checkAttempt(&f, body.Attempt)
	if err := f.Err(); err != nil {
		return err
	}
	info, err := a.queues.Ack(r.Context(), queue, id, attempt)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, settledOf(queue, info))
}

func checkAttempt(f *fault.Fields, attempt *int) int {
	if attempt == nil || *attempt < 1 || *attempt > delayqueue.MaxAttempts {
		f.Add("attempt", "is required and must be the sluice-attempt of the message, 1 to %d", delayqueue.MaxAttempts)
		return 0
	}
	return *attempt
}

type nackBody struct {
	Attempt *int   `json:"attempt"`
	Error   string `json:"error"`
	DelayMS *int64 `json:"delay_ms"`
}

func (a *api) nack(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := a.job(r)
	if err != nil {
		return err
	}
	var body nackBody
	if err := httpapi.Decode(r, &body); err != nil {
		return err
	}
	var f fault.Fields
	attempt := checkAttempt(&f, body.Attempt)
	var delay *time.Duration
	if body.DelayMS != nil {
		d := checkDelay(&f, "delay_ms", *body.DelayMS)
		delay = &d
	}
	if err := f.Err(); err != nil {
		return err
	}
	info, err := a.queues.Nack(r.Context(), queue, id, attempt, body.Error, delay)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, settledOf(queue, info))
}

type jobPage struct {
	Jobs       []jobBody `json:"jobs"`
	NextCursor string    `json:"next_cursor,omitempty"`
}

const defaultPage = 50

func (a *api) list(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	query, err := httpapi.Query(r, "state", "limit", "cursor")
	if err != nil {
		return err
	}
	var f fault.Fields
	state := delayqueue.State(query.Get("state"))
	switch state {
	case "", delayqueue.Scheduled, delayqueue.Dispatching, delayqueue.Dispatched, delayqueue.AwaitingAck,
		delayqueue.Succeeded,
		delayqueue.Canceled, delayqueue.Expired, delayqueue.Dead:
	default:
		f.Add("state", "is not a state of a job")
	}
	limit := defaultPage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > delayqueue.MaxPage {
			f.Add("limit", "must be 1 to %d", delayqueue.MaxPage)
		}
	}
	if err := f.Err(); err != nil {
		return err
	}
	found, next, err := a.queues.List(r.Context(), queue, state, limit, query.Get("cursor"))
	if err != nil {
		return err
	}
	page := jobPage{Jobs: make([]jobBody, 0, len(found)), NextCursor: next}
	for _, info := range found {
		page.Jobs = append(page.Jobs, jobOf(queue, info))
	}
	return httpapi.Write(w, http.StatusOK, page)
}
