package moduletest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/routes"
)

func TestTheModuleHasExactlyTheRoutesOfTheAPI(t *testing.T) {
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
	// shared/routes itself is held against docs/openapi.yaml by its own test.
	require.Equal(t, append(routes.All(), routes.Fallbacks()...), got)
}

func TestTheSmallestExampleHasLessThan15Lines(t *testing.T) {
	t.Parallel()
	lines := strings.Count(read(t, "terraform", "examples", "minimal", "main.tf"), "\n")
	require.Less(t, lines, 15)
}
