package main

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
)

// maxPage bounds a listing.
const maxPage = 100

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
	return httpapi.Write(w, status, p)
}

func policyName(r *http.Request) (string, error) {
	var f fault.Fields
	f.CheckName("name", r.PathValue("name"))
	return r.PathValue("name"), f.Err()
}

func (a *api) putPolicy(w http.ResponseWriter, r *http.Request) error {
	var p policy.Policy
	if err := httpapi.Decode(r, &p); err != nil {
		return err
	}
	var f fault.Fields
	if name := r.PathValue("name"); p.Name == "" {
		p.Name = name
	} else if p.Name != name {
		f.Add("name", "must be the name in the path, %q, or be left out", name)
	}
	p, err := p.Normalize()
	if err := f.Join(err); err != nil {
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
	a.cache.Forget(p.Name)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return writePolicy(w, status, stored)
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
	a.cache.Forget(name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// condition reads If-Match (one entity tag, or *) and If-None-Match (only *), as RFC 9110 has them.
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
		return when, fault.Invalid("If-None-Match", "can only be *")
	}
	if when.Absent && when.ETag != "" {
		return when, fault.Invalid("If-Match", "excludes If-None-Match")
	}
	return when, nil
}

type policyPage struct {
	Policies   []policy.Stored `json:"policies"`
	NextCursor string          `json:"next_cursor,omitempty"`
}

func (a *api) listPolicies(w http.ResponseWriter, r *http.Request) error {
	query, err := httpapi.Query(r, "limit", "cursor")
	if err != nil {
		return err
	}
	limit := int64(maxPage)
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.ParseInt(text, 10, 32); err != nil || limit < 1 || limit > maxPage {
			return fault.Invalid("limit", "must be 1 to %d", maxPage)
		}
	}
	page, next, err := a.store.List(r.Context(), int32(limit), query.Get("cursor"))
	if err != nil {
		return err
	}
	if page == nil {
		page = []policy.Stored{}
	}
	return httpapi.Write(w, http.StatusOK, policyPage{Policies: page, NextCursor: next})
}
