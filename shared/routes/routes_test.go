package routes_test

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/routes"
)

// TestAll requires that docs/openapi.yaml describes exactly the routes of All.
func TestAll(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile("../../docs/openapi.yaml")
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	var described, listed []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	for _, r := range routes.All() {
		listed = append(listed, r.Key())
	}
	require.ElementsMatch(t, listed, described)
}
