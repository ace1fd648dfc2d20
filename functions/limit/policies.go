package main

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
)

// storedBody is the JSON form of a stored policy.
type storedBody struct {
	policy.Document
	Version   int64  `json:"version"`
	UpdatedAt string `json:"updated_at"`
}

func storedBodyOf(p policy.Stored) storedBody {
	return storedBody{Document: p.Document(), Version: p.Version, UpdatedAt: instant.Format(p.UpdatedAt)}
}

func (a *api) getPolicy(w http.ResponseWriter, r *http.Request) error {
	name, err := policyName(r)
	if err != nil {
		return err
	}
	p, err := a.store.Get(r.Context(), name)
	if err != nil {
		return err
	}

	return writePolicy(w, http.StatusOK, p)
}

func writePolicy(w http.ResponseWriter, status int, p policy.Stored) error {
	w.Header().Set("ETag", p.ETag())
	return httpapi.Write(w, status, storedBodyOf(p))
}

func policyName(r *http.Request) (string, error) {
	var f fault.Fields
	f.CheckName("name", r.PathValue("name"))

	return r.PathValue("name"), f.Err()
}

func (a *api) putPolicy(w http.ResponseWriter, r *http.Request) error {
	p, err := policyFromBody(r)
	if err != nil {
		return err
	}
	when, err := condition(r)
	if err != nil {
		return err
	}
	stored, created, err := a.store.Put(r.Context(), p, when)
	if err != nil {
		return err
	}
	a.cache.Invalidate(p.Name)

	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}

	return writePolicy(w, status, stored)
}

// policyFromBody reads a policy from the body. The name of the policy is in the path. The body can
// omit it or contain the same name.
func policyFromBody(r *http.Request) (policy.Policy, error) {
	var d policy.Document
	if err := httpapi.Decode(r, &d); err != nil {
		return policy.Policy{}, err
	}

	var f fault.Fields
	name := r.PathValue("name")
	if d.Name != nil && *d.Name != name {
		f.Add("name", "must be absent or equal to the name in the path, %q", name)
	}
	d.Name = &name
	p, err := d.Normalize()

	return p, f.Join(err)
}

func (a *api) deletePolicy(w http.ResponseWriter, r *http.Request) error {
	name, err := policyName(r)
	if err != nil {
		return err
	}
	when, err := condition(r)
	if err != nil {
		return err
	}
	if err := a.store.Delete(r.Context(), name, when); err != nil {
		return err
	}
	a.cache.Invalidate(name)
	w.WriteHeader(http.StatusNoContent)

	return nil
}

// condition reads the headers If-Match and If-None-Match (RFC 9110, section 13.1). If-Match can
// hold one entity tag or "*". If-None-Match can hold only "*".
func condition(r *http.Request) (dynamopolicy.Condition, error) {
	var when dynamopolicy.Condition
	if match := r.Header.Get("If-Match"); match != "" {
		when.ETag = strings.TrimPrefix(strings.TrimSpace(match), "W/")
	}
	switch r.Header.Get("If-None-Match") {
	case "":
	case "*":
		when.Absent = true
	default:
		return when, fault.Invalid("If-None-Match", "must be *")
	}
	if when.Absent && when.ETag != "" {
		return when, fault.Invalid("If-Match", "must not be combined with If-None-Match")
	}

	return when, nil
}

type policyPage struct {
	Policies   []storedBody `json:"policies"`
	NextCursor string       `json:"next_cursor,omitempty"`
}

func (a *api) listPolicies(w http.ResponseWriter, r *http.Request) error {
	query, err := httpapi.Query(r, "limit", "cursor")
	if err != nil {
		return err
	}
	limit := dynamopolicy.MaxPage
	if query.Has("limit") {
		if limit, err = strconv.Atoi(query.Get("limit")); err != nil {
			return fault.Invalid("limit", "must be a whole number")
		}
	}

	policies, next, err := a.store.List(r.Context(), limit, query.Get("cursor"))
	if err != nil {
		return err
	}
	page := policyPage{Policies: make([]storedBody, len(policies)), NextCursor: next}
	for i, p := range policies {
		page.Policies[i] = storedBodyOf(p)
	}

	return httpapi.Write(w, http.StatusOK, page)
}
