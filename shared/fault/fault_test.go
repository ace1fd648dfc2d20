package fault_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
)

func TestError(t *testing.T) {
	t.Parallel()
	t.Run("matches by code and wraps its cause", func(t *testing.T) {
		t.Parallel()
		err := fmt.Errorf("error acquiring: %w", fault.Unavailable("redis", io.EOF))
		require.ErrorIs(t, err, fault.New(fault.StoreUnavailable, ""))
		require.NotErrorIs(t, err, fault.New(fault.LockHeld, ""))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err))
		require.Empty(t, fault.CodeOf(errors.New("plain")))
	})

	t.Run("With returns a copy", func(t *testing.T) {
		t.Parallel()
		base := fault.New(fault.JobConflict, "too late").With("state", "dispatched")
		more := base.With("attempt", 2)
		require.Equal(t, map[string]any{"state": "dispatched"}, base.Extra)
		require.Equal(t, map[string]any{"state": "dispatched", "attempt": 2}, more.Extra)
	})
}

func TestFields(t *testing.T) {
	t.Parallel()
	var f fault.Fields
	require.NoError(t, f.Err())
	f.Add("ttl_ms", "must be at least %d", 100)
	f.CheckName("name", "-bad")
	var e *fault.Error
	require.ErrorAs(t, f.Err(), &e)
	require.Equal(t, fault.InvalidRequest, e.Code)
	require.Equal(t, []fault.Field{{"ttl_ms", "must be at least 100"}, {"name", fault.NameMessage}}, e.Fields)
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"a": true, "order:42": true, "A.b_c:d-e": true, "0": true, strings.Repeat("x", 128): true,
		"": false, "-a": false, ".a": false, "_a": false, ":a": false, "a b": false, "a/b": false, "ä": false,
		"a{b}":                   false,
		strings.Repeat("x", 129): false, "a\n": false,
	} {
		require.Equal(t, valid, fault.ValidName(name), "%q", name)
	}
}
