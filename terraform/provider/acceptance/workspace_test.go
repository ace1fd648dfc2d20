package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/tofu"
)

// requires declares the provider. Each test configuration starts with this text.
const requires = `
terraform {
  required_providers {
    sluice = { source = "sluicehq/sluice" }
  }
}
`

// workspace returns a folder in which OpenTofu or Terraform runs the provider's binary.
func workspace(t *testing.T, env ...string) *tofu.Workspace {
	t.Helper()
	env = append([]string{
		"SLUICE_ENDPOINT=" + system.APIURL, "SLUICE_REGION=" + region, "SLUICE_ACCESS_KEY=" + accessKey,
		"SLUICE_SECRET_KEY=" + secretKey,
	}, env...)
	w, err := tool.Open(t.TempDir(), built, env...)
	require.NoError(t, err)
	return w
}

// apply applies the configuration and returns the tool's output.
func apply(t *testing.T, w *tofu.Workspace, configuration string) string {
	t.Helper()
	require.NoError(t, w.Write(requires+configuration))
	out, err := w.Run(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false")
	require.NoError(t, err)
	return out
}

// destroy destroys everything in the state.
func destroy(t *testing.T, w *tofu.Workspace) {
	t.Helper()
	_, err := w.Run(t.Context(), "destroy", "-auto-approve", "-no-color", "-input=false")
	require.NoError(t, err)
}
