package moduletest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/routes"
)

// TestRoutes checks that the Terraform module has exactly the routes of the API.
func TestRoutes(t *testing.T) {
	t.Parallel()
	var listed []struct {
		Method   string          `json:"method"`
		Path     string          `json:"path"`
		Function routes.Function `json:"function"`
	}
	decoder := json.NewDecoder(strings.NewReader(module(t, "routes.json")))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&listed))
	var got []routes.Route
	for _, r := range listed {
		got = append(got, routes.Route{Method: r.Method, Path: r.Path, Function: r.Function})
	}
	// A test in shared/routes compares the routes with docs/openapi.yaml.
	require.Equal(t, append(routes.All(), routes.Fallbacks()...), got)
}

// TestMinimalExample checks that the minimal example has fewer than 15 lines.
func TestMinimalExample(t *testing.T) {
	t.Parallel()
	lines := strings.Count(read(t, "terraform", "examples", "minimal", "main.tf"), "\n")
	require.Less(t, lines, 15)
}
