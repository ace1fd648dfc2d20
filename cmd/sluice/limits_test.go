package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const login = `{"description": "logins", "rules": [
	{"name": "burst", "algorithm": "token_bucket", "limit": 2, "window_ms": 60000, "burst": 3},
	{"name": "hourly", "algorithm": "sliding_window", "limit": 500, "window_ms": 3600000}]}`

func TestPolicies(t *testing.T) {
	t.Parallel()
	t.Run("put, get, list and delete", func(t *testing.T) {
		t.Parallel()
		p := name("login")
		file := filepath.Join(t.TempDir(), "login.json")
		require.NoError(t, os.WriteFile(file, []byte(login), 0o600))
		require.Regexp(t, `^`+p+` is stored, version 1, ETag "1-[0-9a-f]+"\n$`,
			does(t, "policies", "put", p, file, "--create"))
		_, errOut, code := sluice(t, "policies", "put", p, file, "--create")
		require.Equal(t, 3, code)
		require.Contains(t, errOut, `sluice: error storing the policy "`+p+`": `)

		out := does(t, "policies", "get", p)
		stored, _, code := piped(t, out, "policies", "put", p, "--json")
		require.Zero(t, code, "put reads the output of get")
		var doc struct {
			Version int
			ETag    string
		}
		require.NoError(t, json.Unmarshal([]byte(stored), &doc))
		require.Equal(t, 2, doc.Version)

		row := `(?m)^` + p + ` +enforce +burst 2/1m \(3\), hourly 500/1h +0 +2  \d{4}-`
		require.Regexp(t, row, does(t, "policies", "list"))
		_, _, code = sluice(t, "policies", "delete", p, "--if-match", `"1-00"`)
		require.Equal(t, 3, code)
		does(t, "policies", "delete", p, "--if-match", doc.ETag)
		_, _, code = sluice(t, "policies", "get", p)
		require.Equal(t, 4, code)
	})

	t.Run("put reports each invalid field in its own line", func(t *testing.T) {
		t.Parallel()
		p := name("login")
		_, errOut, code := piped(t, `{"rules": [{"name": "a", "algorithm": "leaky", "limit": 0, "window_ms": 1000}]}`,
			"policies", "put", p)
		require.Equal(t, 2, code)
		require.Equal(t, `sluice: error storing the policy "`+p+`": 2 fields are invalid:
  rules[0].algorithm must be "fixed_window", "sliding_window", "sliding_window_counter", "token_bucket" or "gcra"
  rules[0].limit must be 1 to 1000000000
`, errOut)
		for input, want := range map[string]string{
			`{"rulez": []}`:    `standard input is not a policy: json: unknown field "rulez"`,
			`{"name": "else"}`: `the policy in standard input has the name "else"`,
			`{} {}`:            "there is text after the policy",
			`nonsense`:         "standard input is not a policy",
		} {
			_, errOut, code = piped(t, input, "policies", "put", p)
			require.Equal(t, 2, code)
			require.Contains(t, errOut, want)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	p, key := name("login"), "ann & bob/ä"
	_, _, code := piped(t, login, "policies", "put", p)
	require.Zero(t, code)
	out := does(t, "limits", "check", p, key, "--cost", "3")
	require.Regexp(t, `^allowed\nRULE +ALGORITHM +LIMIT +REMAINING +FULL IN\n`+
		`burst +token_bucket +2/1m +0 +1m(30s|29s)\nhourly +sliding_window +500/1h +497 +`, out)

	out, errOut, code := sluice(t, "limits", "check", p, key)
	require.Equal(t, 3, code, "the exit code reports a denial")
	require.Regexp(t, `^denied for (30|29)s \(burst\)\n`, out)
	require.Empty(t, errOut)
	out, _, code = sluice(t, "limits", "check", p, key, "--cost", "4")
	require.Equal(t, 3, code)
	require.Contains(t, out, "denied permanently: the cost exceeds the limit (burst)")

	does(t, "limits", "refund", p, key, "--cost", "2")
	require.Contains(t, does(t, "limits", "peek", p, key), "allowed\n")
	require.Contains(t, does(t, "limits", "reset", p, key), "has its whole limit again")
	var d struct{ Remaining int }
	require.NoError(t, json.Unmarshal([]byte(does(t, "limits", "peek", p, key, "--json")), &d))
	require.Equal(t, 3, d.Remaining)
	_, errOut, code = sluice(t, "limits", "check", name("unknown"), key)
	require.Equal(t, 4, code)
	require.Contains(t, errOut, "sluice: error checking the limit ")
}
