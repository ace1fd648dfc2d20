package luascript_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/internal/luascript"
	"github.com/sluicehq/sluice/shared/redisconn"
)

func TestScript(t *testing.T) {
	t.Parallel()
	const (
		body = "-- Requires: part\nif ARGV.token == 'fail' then fail() end\nreturn 1"
		part = "-- Fails.\nlocal nothing\nlocal function fail()\n  return nothing.field\nend"
	)
	files := fstest.MapFS{"s/do.lua": {Data: []byte(head + body)}, "s/part.lua": {Data: []byte(part)}}
	script := luascript.Load(files, "s/do.lua")

	t.Run("runs", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			t.Helper()
			conn := redisconn.FromClient(r.Client, redisconn.Config{})
			reply, err := conn.Run(t.Context(), script, []string{"a"}, "ok")
			require.NoError(t, err)
			require.Equal(t, int64(1), reply)
		})
	})

	t.Run("names the file and line that failed", func(t *testing.T) {
		t.Parallel()
		conn := redisconn.FromClient(redistest.Single(t).Client, redisconn.Config{})
		_, err := conn.Run(t.Context(), script, []string{"a"}, "fail")
		require.ErrorContains(t, err, "s/part.lua:4: ")

		calls := []redisconn.Call{
			{Keys: []string{"a"}, Args: []any{"fail"}},
			{Keys: []string{"b"}, Args: []any{"ok"}},
		}
		replies := conn.RunEach(t.Context(), script, calls)
		require.ErrorContains(t, replies[0].Err, "s/part.lua:4: ")
		require.NoError(t, replies[1].Err)
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	t.Run("composes the script at its first use", func(t *testing.T) {
		t.Parallel()
		client := redistest.Single(t).Client
		files := fstest.MapFS{}
		script := luascript.Load(files, "do.lua")
		files["do.lua"] = &fstest.MapFile{Data: []byte(head + "return 1")}
		require.EqualValues(t, 1, script.Run(t.Context(), client, []string{"a"}, "ok").Val())
	})

	t.Run("missing file: the first use panics", func(t *testing.T) {
		t.Parallel()
		script := luascript.Load(fstest.MapFS{}, "do.lua")
		require.Panics(t, func() { script.Run(t.Context(), redistest.Single(t).Client, nil) })
	})
}

func TestScriptLocate(t *testing.T) {
	t.Parallel()
	script := luascript.Load(fstest.MapFS{"do.lua": {Data: []byte(head + "return 1")}}, "do.lua")
	for reply, want := range map[string]string{
		"ERR user_script:7: attempt to index nil script: 1f, on @user_script:7.":                   "do.lua:7: ",
		"ERR Error running script (call to f_1f): @user_script:7: user_script:7: attempt to index": "do.lua:7: ",
		"OOM command not allowed script: 1f, on @user_script:7.":                                   "do.lua:7: ",
		"NOSCRIPT No matching script.":                                                             "",
	} {
		err := errors.New(reply)
		require.EqualError(t, script.Locate(err), want+reply)
		require.ErrorIs(t, script.Locate(err), err)
	}
	require.NoError(t, script.Locate(nil))
}
