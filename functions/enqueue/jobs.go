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
	info, err := a.jobs.Get(r.Context(), queue, id)
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
	change, err := delayqueue.Change{
		RunAt:   parseInstant(&f, "run_at", b.RunAt),
		Delay:   parseDelay(b.DelayMS),
		Payload: b.Payload,
	}.Normalize()
	return change, f.Join(err)
}

func parseDelay(ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	return new(instant.Milliseconds(*ms))
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
	info, err := a.jobs.Reschedule(r.Context(), queue, id, change)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, jobOf(queue, info))
}

// stateBody is the JSON form of a job's state after a call.
type stateBody struct {
	ID      string           `json:"id"`
	Queue   string           `json:"queue"`
	State   delayqueue.State `json:"state"`
	RunAt   string           `json:"run_at"`
	Attempt int              `json:"attempt"`
}

func stateOf(queue string, i delayqueue.Info) stateBody {
	return stateBody{ID: i.ID, Queue: queue, State: i.State, RunAt: instant.Format(i.RunAt), Attempt: i.Attempt}
}

func (a *api) cancel(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := a.job(r)
	if err != nil {
		return err
	}
	info, err := a.jobs.Cancel(r.Context(), queue, id)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, stateOf(queue, info))
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
	info, err := a.jobs.Ack(r.Context(), queue, id, explicit(body.Attempt))
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, stateOf(queue, info))
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
	info, err := a.jobs.Nack(r.Context(), queue, id, explicit(body.Attempt),
		delayqueue.NackOptions{Reason: body.Error, Delay: parseDelay(body.DelayMS)})
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, stateOf(queue, info))
}

type jobPage struct {
	Jobs       []jobBody `json:"jobs"`
	NextCursor string    `json:"next_cursor,omitempty"`
}

func (a *api) list(w http.ResponseWriter, r *http.Request) error {
	queue, err := a.queue(r)
	if err != nil {
		return err
	}
	query, err := httpapi.Query(r, "state", "limit", "cursor")
	if err != nil {
		return err
	}
	options := delayqueue.ListOptions{State: delayqueue.State(query.Get("state")), Cursor: query.Get("cursor")}
	if text := query.Get("limit"); text != "" {
		number, _ := strconv.Atoi(text) // 0, which is out of range, if text is not a number
		options.Limit = explicit(&number)
	}

	page, err := a.jobs.List(r.Context(), queue, options)
	if err != nil {
		return err
	}
	body := jobPage{Jobs: make([]jobBody, 0, len(page.Jobs)), NextCursor: page.NextCursor}
	for _, info := range page.Jobs {
		body.Jobs = append(body.Jobs, jobOf(queue, info))
	}
	return httpapi.Write(w, http.StatusOK, body)
}
