package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// answer is a response of the API.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	took   time.Duration // from the request to the end of the answer
}

func (a answer) text(field string) string    { s, _ := a.body[field].(string); return s }
func (a answer) number(field string) float64 { n, _ := a.body[field].(float64); return n }
func (a answer) is(field string) bool        { b, _ := a.body[field].(bool); return b }

func (a answer) instant(field string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, a.text(field))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is not an RFC 3339 time: %w", field, err)
	}
	return t, nil
}

// call sends a request. The body is sent as JSON; nil sends no body.
func (s *scenario) call(ctx context.Context, method, path string, body any) (answer, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, fmt.Errorf("error encoding a request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.APIURL+path, content)
	if err != nil {
		return answer{}, fmt.Errorf("error making a request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	started := time.Now()
	response, err := s.http.Do(r)
	if err != nil {
		return answer{}, fmt.Errorf("the API did not answer %s %s: %w", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	a := answer{status: response.StatusCode, header: response.Header}
	text, err := io.ReadAll(response.Body)
	a.took = time.Since(started)
	if err != nil {
		return a, fmt.Errorf("error reading the answer to %s %s: %w", method, path, err)
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &a.body); err != nil {
			return a, fmt.Errorf("the answer to %s %s is not JSON: %w", method, path, err)
		}
	}
	return a, nil
}

// want sends a request and returns an error if the answer has a different status.
func (s *scenario) want(ctx context.Context, status int, method, path string, body any) (answer, error) {
	a, err := s.call(ctx, method, path, body)
	if err == nil && a.status != status {
		err = fmt.Errorf("%s %s: got %d, want %d: %v", method, path, a.status, status, a.body)
	}
	return a, err
}
