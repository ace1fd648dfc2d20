package httpapi_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
)

// TestProblem requires that docs/api.md lists every code with its status and title.
func TestProblem(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	titles := make(map[any]bool)
	for _, code := range []fault.Code{
		fault.InvalidRequest, fault.NotFound, fault.JobNotFound, fault.QueueNotFound, fault.PolicyNotFound,
		fault.MethodNotAllowed, fault.LockHeld, fault.LockNotHeld, fault.JobConflict, fault.PreconditionFailed,
		fault.PayloadTooLarge, fault.UnsupportedMediaType, fault.QuotaExceeded, fault.Internal, fault.StoreUnavailable,
		fault.DeadlineExceeded,
	} {
		doc := httpapi.Problem(fault.New(code, "detail"), "request-1")
		require.NotContains(t, titles, doc["title"], code)
		titles[doc["title"]] = true
		require.Contains(t, string(page), fmt.Sprintf("| `%s` | %v | %s |", code, doc["status"], doc["title"]))
	}
}
