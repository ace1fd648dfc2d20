package goclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// fivePerHour returns a policy with one rule.
func fivePerHour(name string) client.Policy {
	return client.Policy{Name: name, Rules: []client.Rule{{
		Name: "hourly", Algorithm: client.AlgorithmSlidingWindow, Limit: 5, Window: time.Hour,
	}}}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("are charged, refunded and reset", func(t *testing.T) {
		t.Parallel()
		c, ctx, login, key := connect(t), t.Context(), name("login"), "ann/ä b+c&d"
		_, err := c.PutPolicy(ctx, fivePerHour(login), client.IfNoneMatch())
		require.NoError(t, err)

		d, err := c.Check(ctx, client.Check{Policy: login, Key: key, Cost: 4})
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.EqualValues(t, 1, d.Remaining)
		require.Equal(t, key, d.Key)
		d, err = c.Check(ctx, client.Check{Policy: login, Key: key, Cost: 2})
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.Equal(t, "hourly", d.Violated)
		require.NotNil(t, d.RetryAfter)
		require.Positive(t, *d.RetryAfter)
		d, err = c.Check(ctx, client.Check{Policy: login, Key: key, Cost: 6})
		require.NoError(t, err)
		require.Nil(t, d.RetryAfter, "a cost of 6 exceeds the limit of 5")

		d, err = c.Refund(ctx, login, key, 3)
		require.NoError(t, err)
		require.EqualValues(t, 4, d.Remaining)
		d, err = c.Peek(ctx, login, key)
		require.NoError(t, err)
		require.EqualValues(t, 4, d.Remaining)
		require.NoError(t, c.Reset(ctx, login, key))
		d, err = c.Peek(ctx, login, key)
		require.NoError(t, err)
		require.EqualValues(t, 5, d.Remaining)

		decisions, allowed, err := c.CheckAll(ctx,
			[]client.Check{{Policy: login, Key: "a"}, {Policy: login, Key: "b", Cost: 9}})
		require.NoError(t, err)
		require.False(t, allowed)
		require.Len(t, decisions, 2)
		require.False(t, decisions[1].Allowed)
		d, err = c.Peek(ctx, login, "a")
		require.NoError(t, err)
		require.EqualValues(t, 5, d.Remaining, "a denied call must charge nothing")

		_, err = c.Allow(ctx, name("unknown"), key)
		require.ErrorIs(t, err, client.ErrPolicyNotFound)
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	t.Run("are stored, listed and deleted with conditions", func(t *testing.T) {
		t.Parallel()
		c, ctx, login := connect(t), t.Context(), name("login")
		made, err := c.PutPolicy(ctx, fivePerHour(login), client.IfNoneMatch())
		require.NoError(t, err)
		require.EqualValues(t, 1, made.Version)
		require.Equal(t, client.PolicyEnforce, made.Mode, "the response must contain the defaults")
		_, err = c.PutPolicy(ctx, fivePerHour(login), client.IfNoneMatch())
		require.ErrorIs(t, err, client.ErrPreconditionFailed)

		read, err := c.GetPolicy(ctx, login)
		require.NoError(t, err)
		require.Equal(t, made, read)
		next := read.Policy
		next.Rules[0].Limit = 6
		changed, err := c.PutPolicy(ctx, next, client.IfMatch(read.ETag))
		require.NoError(t, err)
		require.EqualValues(t, 2, changed.Version)
		require.NotEqual(t, read.ETag, changed.ETag)
		_, err = c.PutPolicy(ctx, next, client.IfMatch(read.ETag))
		require.ErrorIs(t, err, client.ErrPreconditionFailed)

		found := false
		for p, err := range c.ListPolicies(ctx) {
			require.NoError(t, err)
			found = found || p.Name == login && p.Version == 2
		}
		require.True(t, found)

		require.ErrorIs(t, c.DeletePolicy(ctx, login, client.IfMatch(read.ETag)), client.ErrPreconditionFailed)
		require.NoError(t, c.DeletePolicy(ctx, login, client.IfMatch(changed.ETag)))
		_, err = c.GetPolicy(ctx, login)
		require.ErrorIs(t, err, client.ErrPolicyNotFound)
		require.ErrorIs(t, c.DeletePolicy(ctx, login), client.ErrPolicyNotFound)
	})

	t.Run("invalid: are refused, and the error lists every invalid field", func(t *testing.T) {
		t.Parallel()
		bad := fivePerHour(name("login"))
		bad.Rules[0].Limit, bad.Rules[0].Algorithm, bad.LocalShare = 0, "leaky", 2
		_, err := connect(t).PutPolicy(t.Context(), bad)
		var e *client.Error
		require.ErrorAs(t, err, &e)
		var fields []string
		for _, f := range e.Fields {
			fields = append(fields, f.Field)
		}
		require.ElementsMatch(t, []string{"local_share", "rules[0].algorithm", "rules[0].limit"}, fields)
	})
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	c, login := connect(t), name("login")
	_, err := c.PutPolicy(t.Context(), fivePerHour(login))
	require.NoError(t, err)
	limit, err := c.Middleware(client.LimitConfig{Policy: login, FailClosed: true})
	require.NoError(t, err)
	s := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "allowed")
	})))
	defer s.Close()
	for i := range 7 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, map[bool]int{true: 200, false: 429}[i < 5], response.StatusCode)
		require.Contains(t, response.Header.Get("RateLimit"), `"hourly";r=`)
		require.Equal(t, i >= 5, response.Header.Get("Retry-After") != "")
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	h, err := connect(t).Health(t.Context())
	require.NoError(t, err)
	require.True(t, h.Healthy(), "%+v", h)
	var names []string
	for _, check := range h.Checks {
		names = append(names, check.Name)
	}
	require.Contains(t, names, "redis")
	require.Contains(t, names, "dynamodb")
}
