package apitest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Reply is an answer whose body has been read.
type Reply struct {
	Status int
	Header http.Header
	// Body is the JSON object in the body, or nil if the body is empty.
	Body Object
	// Text is the body as it was sent.
	Text string
}

// Read reads an answer and checks it. The answer must have a request ID, a body (except with the
// status 204) and the right media type. If the status is 400 or higher, the body must be a complete
// problem document. The exception is a health report, which is a body with the member "checks".
func Read(t testing.TB, w *httptest.ResponseRecorder) Reply {
	t.Helper()
	a := Reply{Status: w.Code, Header: w.Header(), Text: w.Body.String()}
	require.NotEmpty(t, a.Header.Get("X-Request-Id"))
	if a.Text == "" {
		require.Equal(t, http.StatusNoContent, a.Status, "an answer without a body")
		return a
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a.Body), a.Text)

	if a.Status < http.StatusBadRequest || a.Body["checks"] != nil {
		require.Equal(t, "application/json", a.Header.Get("Content-Type"))
		return a
	}
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	require.Equal(t, a.Header.Get("X-Request-Id"), a.Body["instance"])
	RequireProblem(t, a.Body, a.Status, a.Body["code"])
	return a
}

// RequireProblem requires that doc is a complete problem document with this status and code. The
// results of a batch may contain such documents.
func RequireProblem(t testing.TB, doc any, status int, code any) {
	t.Helper()
	problem, ok := doc.(Object)
	require.True(t, ok, "%v", doc)
	require.EqualValues(t, status, problem["status"], "%v", doc)
	require.Equal(t, code, problem["code"], "%v", doc)
	for _, member := range []string{"type", "title", "detail", "code", "instance"} {
		require.NotEmpty(t, problem[member], "%s of %v", member, doc)
	}
}

// InvalidFields returns the fields that the problem names as invalid. It requires a message for
// each of them.
func InvalidFields(t testing.TB, problem Object) (names []string) {
	t.Helper()
	list, _ := problem["errors"].([]any)
	for _, e := range list {
		entry, ok := e.(Object)
		require.True(t, ok, "%v", problem)
		require.NotEmpty(t, entry["message"])
		name, _ := entry["field"].(string)
		names = append(names, name)
	}
	return names
}

// InvalidFields returns the fields that the answer names as invalid.
func (a Reply) InvalidFields(t testing.TB) []string {
	t.Helper()
	return InvalidFields(t, a.Body)
}

// String returns a member of the body that must be a string.
func (a Reply) String(t testing.TB, member string) string {
	t.Helper()
	s, ok := a.Body[member].(string)
	require.True(t, ok, "%s of %s", member, a.Text)
	return s
}

// Number returns a member of the body that must be a whole number.
func (a Reply) Number(t testing.TB, member string) int64 {
	t.Helper()
	n, ok := a.Body[member].(float64)
	require.True(t, ok, "%s of %s", member, a.Text)
	require.Equal(t, float64(int64(n)), n)
	return int64(n)
}

// Instant returns a member of the body that must be a time in the format of the API.
func (a Reply) Instant(t testing.TB, member string) time.Time {
	t.Helper()
	text := a.String(t, member)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, text)
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// Objects returns a member of the body that must be an array of objects.
func (a Reply) Objects(t testing.TB, member string) []Object {
	t.Helper()
	list, ok := a.Body[member].([]any)
	require.True(t, ok, "%s of %s", member, a.Text)
	objects := make([]Object, len(list))
	for i, element := range list {
		objects[i], ok = element.(Object)
		require.True(t, ok, "%s of %s", member, a.Text)
	}
	return objects
}

// Members returns the names of the members of the body.
func (a Reply) Members() (names []string) {
	for name := range a.Body {
		names = append(names, name)
	}
	return names
}
