package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// ListJobsOptions selects one page of jobs.
type ListJobsOptions struct {
	// State selects the jobs in one state. Empty selects all.
	State JobState
	// Limit is the size of the page: 1 to 200. Zero means the API's default.
	Limit int
	// Cursor is the NextCursor of the previous page. Empty starts with the first page.
	Cursor string
}

// JobPage is one page of jobs.
type JobPage struct {
	Jobs []JobInfo `json:"jobs"`
	// NextCursor is the cursor of the next page; "" on the last page.
	NextCursor string `json:"next_cursor,omitempty"`
}

// ListPage reads one page of jobs. Errors: [ErrQueueNotFound], [ErrInvalidRequest].
func (q *Queue) ListPage(ctx context.Context, o ListJobsOptions) (JobPage, error) {
	query := url.Values{}
	if o.State != "" {
		query.Set("state", string(o.State))
	}
	if o.Limit != 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Cursor != "" {
		query.Set("cursor", o.Cursor)
	}
	var p JobPage
	err := q.do(ctx, "listing the jobs of", call{method: "GET", query: query, out: &p}, "jobs")
	return p, err
}

// listPage is the page size of [Queue.List].
const listPage = 100

// List returns an iterator over all jobs in a state, or over all jobs if state is "". It reads them
// page by page. An error ends the iteration.
func (q *Queue) List(ctx context.Context, state JobState) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		o := ListJobsOptions{State: state, Limit: listPage}
		for {
			page, err := q.ListPage(ctx, o)
			if err != nil {
				yield(JobInfo{}, err)
				return
			}
			for _, j := range page.Jobs {
				if !yield(j, nil) {
					return
				}
			}
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				return
			}
		}
	}
}
