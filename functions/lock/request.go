package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/lock"
)

// LeaseFields are the fields that the bodies of a lock acquire and a semaphore acquire share.
type LeaseFields struct {
	TTL         *int64          `json:"ttl_ms"`
	Wait        int64           `json:"wait_ms"`
	Token       *string         `json:"token"`
	Owner       string          `json:"owner"`
	Metadata    json.RawMessage `json:"metadata"`
	Consistency string          `json:"consistency"`
}

type acquireLockBody struct {
	LeaseFields

	Mode lock.Mode `json:"mode"`
}

type acquireSemaphoreBody struct {
	LeaseFields

	Capacity int64 `json:"capacity"`
}

type renewBody struct {
	Token       string `json:"token"`
	TTL         *int64 `json:"ttl_ms"`
	Consistency string `json:"consistency"`
}

type releaseBody struct {
	Token       string `json:"token"`
	Consistency string `json:"consistency"`
}

// acquireRequest converts the body of an acquire to a [lock.Request] and a consistency. It
// validates neither. The owner defaults to the caller's IAM identity.
func acquireRequest(kind lock.Kind, r *http.Request) (lock.Request, string, error) {
	if kind == lock.Semaphore {
		var body acquireSemaphoreBody
		if err := httpapi.Decode(r, &body); err != nil {
			return lock.Request{}, "", err
		}
		req := body.request(kind, r)
		req.Capacity = body.Capacity
		return req, body.Consistency, nil
	}

	var body acquireLockBody
	if err := httpapi.Decode(r, &body); err != nil {
		return lock.Request{}, "", err
	}
	req := body.request(kind, r)
	req.Mode = body.Mode
	return req, body.Consistency, nil
}

func (f LeaseFields) request(kind lock.Kind, r *http.Request) lock.Request {
	req := lock.Request{
		Kind:     kind,
		Name:     r.PathValue("name"),
		Token:    tokenOf(f.Token),
		Owner:    f.Owner,
		Metadata: f.Metadata,
		TTL:      ttlOf(f.TTL),
		Wait:     instant.Milliseconds(f.Wait),
	}
	if req.Owner == "" {
		req.Owner = httpapi.Caller(r.Context())
	}
	return req
}

func keyOf(kind lock.Kind, r *http.Request) lock.Key {
	return lock.Key{Kind: kind, Name: r.PathValue("name")}
}

// ttlOf converts the field ttl_ms to a duration. Package lock treats a TTL of 0 as not set. An
// explicit 0 therefore becomes 1 ns, which package lock refuses as too short.
func ttlOf(ms *int64) time.Duration {
	switch {
	case ms == nil:
		return 0
	case *ms == 0:
		return time.Nanosecond
	default:
		return instant.Milliseconds(*ms)
	}
}

// tokenOf converts the field token of a request. Package lock treats an empty token as not set. An
// explicit "" therefore becomes " ", which package lock refuses as too short.
func tokenOf(token *string) string {
	switch {
	case token == nil:
		return ""
	case *token == "":
		return " "
	default:
		return *token
	}
}

// joinInvalid merges invalid_request errors into one error that names each invalid field once. If
// one of errs is not an invalid_request error, joinInvalid returns that error alone.
func joinInvalid(errs ...error) error {
	var all fault.Fields
	for _, err := range errs {
		if err == nil {
			continue
		}
		invalid, ok := errors.AsType[*fault.Error](err)
		if !ok || invalid.Code != fault.InvalidRequest {
			return err
		}
		for _, field := range invalid.Fields {
			if !slices.ContainsFunc(all, func(f fault.Field) bool { return f.Field == field.Field }) {
				all = append(all, field)
			}
		}
	}
	return all.Err()
}
