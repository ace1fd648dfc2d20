// Package publicline tests the client as the users of its Go module see it. The client must require
// few other modules, and its exported API must not contain types from the rest of the repository.
package publicline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxModules is the maximum number of modules in the build list of a module that imports the
// client. The number includes the importing module.
const maxModules = 25

const outsideModule = `module outside.example/shop

go 1.26.0

require github.com/sluicehq/sluice/client v0.1.0

replace github.com/sluicehq/sluice/client => `

const outsideMain = `package main

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/consumer"
	"github.com/sluicehq/sluice/client/fence"
)

func main() {
	c, err := client.New(client.Config{Endpoint: "https://abc123.execute-api.eu-central-1.amazonaws.com"})
	if err != nil {
		panic(err)
	}
	rule := client.Rule{Name: "burst", Algorithm: client.AlgorithmGCRA, Limit: 5}
	_, err = c.PutPolicy(context.Background(), client.Policy{Name: "login", Rules: []client.Rule{rule}})
	fmt.Println(err, fence.New(nil))
	_, err = consumer.New(consumer.Config{Client: c})
	fmt.Println(err)
}
`

func TestOutsideModule(t *testing.T) {
	t.Parallel()
	client, err := filepath.Abs("../../client")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(client, "go.sum"))
	require.NoError(t, err)

	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": outsideModule + client + "\n", "go.sum": string(sums), "main.go": outsideMain,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}

	goIn(t, dir, "build", "-o", filepath.Join(dir, "shop"), ".")
	modules := strings.Fields(goIn(t, dir, "list", "-m", "-f", "{{.Path}}", "all"))
	require.LessOrEqual(t, len(modules), maxModules, "%s", strings.Join(modules, "\n"))
	require.NotContains(t, modules, "github.com/sluicehq/sluice", "the client must not require the root module")
}

// goIn runs a go command in a folder, without a Go workspace, and returns the command's output.
func goIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	require.NoError(t, err, failure.String())
	return string(out)
}

// TestRequirements checks that the root module, the provider and the benchmarks require the same
// version of the client. A release starts with a tag of the client for this version.
func TestRequirements(t *testing.T) {
	t.Parallel()
	versions := make(map[string]string) // by module
	for _, dir := range []string{"../..", "../../terraform/provider", "../../bench"} {
		version := goIn(t, dir, "list", "-m", "-f", "{{.Version}} {{.Replace.Path}}", clientModule)
		name, replacement, _ := strings.Cut(strings.TrimSpace(version), " ")
		require.True(t, strings.HasSuffix(replacement, "/client"), "%s must use the client of this commit", dir)
		versions[dir] = name
	}
	require.Equal(t, versions["../.."], versions["../../terraform/provider"])
	require.Equal(t, versions["../.."], versions["../../bench"])
}
