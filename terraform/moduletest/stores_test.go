package moduletest

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// adapters returns the code of each package that calls DynamoDB. The key is the name of the
// package's table in the Terraform module.
func adapters(t *testing.T) map[string]string {
	t.Helper()
	table := map[string]string{"outbox": "outbox", "dynamopolicy": "policies", "dynamolock": "locks"}
	out := make(map[string]string)
	for path, text := range sources(t, "shared") {
		text = inlined(text)
		if !strings.Contains(text, "aws-sdk-go-v2/service/dynamodb\"") {
			continue
		}
		if strings.Contains(path, "/startup/") {
			calls := slices.Compact(slices.Sorted(slices.Values(matches(text, `\bdynamodb\.(\w+)`))))
			require.Equal(t, []string{"Client", "NewFromConfig"}, calls, "%s may only create the client", path)
			continue
		}
		name := table[filepath.Base(filepath.Dir(path))]
		require.NotEmpty(t, name, "%s calls DynamoDB; add its package and its table to the map above", path)
		out[name] += text
	}
	require.GreaterOrEqual(t, len(out), 2)
	return out
}

// inlined replaces the constants for attribute names in a file with their values, so that the tests
// can search for the names.
func inlined(text string) string {
	for _, c := range regexp.MustCompile(`(?m)^\t(attr\w+)\s+= ("\w+")`).FindAllStringSubmatch(text, -1) {
		text = regexp.MustCompile(`\b`+c[1]+`\b`).ReplaceAllString(text, c[2])
	}
	return text
}

func TestTables(t *testing.T) {
	t.Parallel()
	t.Run("have the keys and the TTL that the Go code uses", func(t *testing.T) {
		t.Parallel()
		for table, code := range adapters(t) {
			keys := matches(code, `AttributeName: aws\.String\("(\w+)"\), KeyType:`)
			require.NotEmpty(t, keys, table)
			made := block(t, module(t, "tables.tf"), `resource "aws_dynamodb_table" "`+table+`" {`)
			require.Equal(t, keys, matches(made, `(?:hash|range)_key\s+= "(\w+)"`), table)
			ttl := matches(made, `attribute_name = "(\w+)"`)
			for _, attribute := range ttl {
				require.Contains(t, code, `"`+attribute+`"`, "nothing writes the TTL attribute of %s", table)
			}
			require.Equal(t, strings.Contains(code, `"ttl"`), len(ttl) == 1,
				"%s: the table must expire items if the code writes a TTL", table)
		}
	})

	t.Run("have IAM actions for exactly the calls of the Go code", func(t *testing.T) {
		t.Parallel()
		allowed := block(t, module(t, "iam.tf"), "  table_actions = {")
		for table, code := range adapters(t) {
			called := make(map[string]bool)
			for _, call := range matches(code, `\.client\.(\w+)\(`) {
				if call == "TransactWriteItems" { // IAM checks the permission for each operation in it
					for _, part := range matches(code, `(Put|Update|Delete|ConditionCheck): &types\.`) {
						called["dynamodb:"+part+"Item"] = true
					}
					continue
				}
				called["dynamodb:"+call] = true
			}
			line := matches(allowed, `(?m)^\s+`+table+`\s+= \[(.*)\]$`)
			require.Len(t, line, 1, table)
			require.Equal(t, slices.Sorted(maps.Keys(called)), matches(line[0], `"([^"]+)"`), table)
		}
	})
}
