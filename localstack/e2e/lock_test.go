package e2e

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestLock(t *testing.T) {
	t.Parallel()
	t.Run("is acquired, renewed, inspected and released", func(t *testing.T) {
		t.Parallel()
		path := "/v1/locks/" + redistest.Name("lock")
		free := want(t, 200, "GET", path, nil)
		require.Equal(t, false, free.body["held"])
		require.Nil(t, free.body["mode"])

		lease := want(t, 200, "POST", path+"/acquire",
			object{"ttl_ms": 30_000, "owner": "ann", "metadata": object{"pod": "a"}})
		require.Len(t, lease.string("token"), 26, "128 random bits in base 32")
		require.Equal(t, "exclusive", lease.string("mode"))
		require.Equal(t, false, lease.body["reacquired"])
		require.Equal(t, 30*time.Second, lease.instant(t, "expires_at").Sub(lease.instant(t, "acquired_at")))

		again := want(t, 200, "POST", path+"/acquire", object{"ttl_ms": 30_000, "token": lease.string("token")})
		require.Equal(t, true, again.body["reacquired"])
		require.Equal(t, lease.number("fence"), again.number("fence"))

		refused := want(t, 409, "POST", path+"/acquire", nil)
		require.Equal(t, "lock_held", refused.string("code"))
		require.Equal(t, "ann", refused.string("holder"))
		require.Positive(t, refused.number("retry_after_ms"))
		require.NotEmpty(t, refused.header.Get("Retry-After"))

		state := want(t, 200, "GET", path, nil)
		require.Equal(t, true, state.body["held"])
		require.NotContains(t, string(state.text), lease.string("token"), "the state must not contain the token")

		renewed := want(t, 200, "POST", path+"/renew", object{"token": lease.string("token"), "ttl_ms": 60_000})
		require.Equal(t, lease.number("fence"), renewed.number("fence"))
		require.True(t, renewed.instant(t, "expires_at").After(lease.instant(t, "expires_at")))

		require.Equal(t, true, want(t, 200, "POST", path+"/release",
			object{"token": lease.string("token")}).body["released"])
		next := want(t, 200, "POST", path+"/acquire", nil)
		require.Greater(t, next.number("fence"), lease.number("fence"))

		other := want(t, 409, "POST", path+"/renew", object{"token": lease.string("token")})
		require.Equal(t, "lock_not_held", other.string("code"))
		require.Equal(t, "held_by_other", other.string("reason"))

		require.EqualValues(t, 1, want(t, 200, "DELETE", path, nil).number("released"))
		require.EqualValues(t, 0, want(t, 200, "DELETE", path, nil).number("released"))
		gone := want(t, 409, "POST", path+"/release", object{"token": next.string("token")})
		require.Equal(t, "expired", gone.string("reason"))
	})

	t.Run("shared locks and semaphores have several holders", func(t *testing.T) {
		t.Parallel()
		path := "/v1/locks/" + redistest.Name("lock")
		for range 2 {
			want(t, 200, "POST", path+"/acquire", object{"mode": "shared"})
		}
		want(t, 409, "POST", path+"/acquire", nil)

		path = "/v1/semaphores/" + redistest.Name("sem")
		first := want(t, 200, "POST", path+"/acquire", object{"capacity": 2})
		require.EqualValues(t, 1, first.number("in_use"))
		require.EqualValues(t, 2, want(t, 200, "POST", path+"/acquire", object{"capacity": 2}).number("in_use"))
		want(t, 409, "POST", path+"/acquire", object{"capacity": 2})
		want(t, 200, "POST", path+"/renew", object{"token": first.string("token")})
		want(t, 200, "POST", path+"/release", object{"token": first.string("token")})
		state := want(t, 200, "GET", path, nil)
		require.Len(t, state.body["holders"], 1)
		require.EqualValues(t, 1, want(t, 200, "DELETE", path, nil).number("released"))
	})

	// Each waiting acquire occupies an invocation. Waiters must not block the release.
	t.Run("forty waiters do not block the release", func(t *testing.T) {
		t.Parallel()
		path := "/v1/locks/" + redistest.Name("lock")
		holder := want(t, 200, "POST", path+"/acquire", object{"ttl_ms": 60_000})
		const waiters = 40
		fences := make(chan float64, waiters)
		var wait sync.WaitGroup
		for range waiters {
			wait.Go(func() {
				lease := call(t, "POST", path+"/acquire", object{"wait_ms": 20_000, "ttl_ms": 60_000})
				if lease.status == 200 {
					fences <- lease.number("fence")
					call(t, "POST", path+"/release", object{"token": lease.string("token")})
				}
			})
		}
		require.Eventually(t, func() bool {
			return call(t, "GET", path, nil).number("waiters") == waiters
		}, 10*time.Second, 20*time.Millisecond)
		started := time.Now()
		want(t, 200, "POST", path+"/release", object{"token": holder.string("token")})
		require.Less(t, time.Since(started), 2*time.Second)
		wait.Wait()
		close(fences)
		last, count := holder.number("fence"), 0
		for f := range fences {
			require.Greater(t, f, last, "each holder must have a higher fence than the previous holder")
			last, count = f, count+1
		}
		require.Equal(t, waiters, count, "every waiter must acquire the lock")
	})
}

func TestInvalidLockRequests(t *testing.T) {
	t.Parallel()
	name := redistest.Name("lock")
	path := "/v1/locks/" + name
	for title, tc := range map[string]struct {
		path   string
		body   any
		field  string
		status int
	}{
		"a ttl below 100 ms":             {path + "/acquire", object{"ttl_ms": 99}, "ttl_ms", 400},
		"a ttl of zero":                  {path + "/acquire", object{"ttl_ms": 0}, "ttl_ms", 400},
		"a ttl over an hour":             {path + "/acquire", object{"ttl_ms": 3_600_001}, "ttl_ms", 400},
		"a negative wait":                {path + "/acquire", object{"wait_ms": -1}, "wait_ms", 400},
		"a wait over 20 s":               {path + "/acquire", object{"wait_ms": 20_001}, "wait_ms", 400},
		"a short token":                  {path + "/acquire", object{"token": "short"}, "token", 400},
		"an empty token":                 {path + "/acquire", object{"token": ""}, "token", 400},
		"an unknown mode":                {path + "/acquire", object{"mode": "mine"}, "mode", 400},
		"metadata that is not an object": {path + "/acquire", object{"metadata": []int{1}}, "metadata", 400},
		"an unknown consistency":         {path + "/acquire", object{"consistency": "eventual"}, "consistency", 400},
		"a misspelt field":               {path + "/acquire", object{"ttl": 5}, "ttl", 400},
		"a string for a number":          {path + "/acquire", object{"ttl_ms": "5"}, "ttl_ms", 400},
		"malformed JSON":                 {path + "/acquire", `{"ttl_ms": `, "", 400},
		"a name with a brace":            {"/v1/locks/a%7Bb/acquire", nil, "name", 400},
		"a name that is too long":        {"/v1/locks/" + string(make129()) + "/acquire", nil, "name", 400},
		"a renewal without a token":      {path + "/renew", object{}, "token", 400},
		"a release without a token":      {path + "/release", object{}, "token", 400},
		"a semaphore without capacity":   {"/v1/semaphores/" + name + "/acquire", object{}, "capacity", 400},
		"a semaphore of capacity 10001": {"/v1/semaphores/" + name + "/acquire", object{"capacity": 10_001}, "capacity",
			400},
		"a strong semaphore": {"/v1/semaphores/" + name + "/acquire",
			object{"capacity": 1, "consistency": "strong"}, "consistency", 400},
		"a capacity for a lock": {path + "/acquire", object{"capacity": 1}, "capacity", 400},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			a := want(t, tc.status, "POST", tc.path, tc.body)
			require.Equal(t, "invalid_request", a.string("code"))
			if tc.field == "" {
				return
			}
			var fields []any
			errors, _ := a.body["errors"].([]any)
			for _, e := range errors {
				fields = append(fields, e.(object)["field"])
			}
			require.Contains(t, fields, tc.field)
		})
	}
	state := want(t, 200, "GET", path, nil)
	require.Equal(t, false, state.body["held"])
}

func make129() []byte {
	b := make([]byte, 129)
	for i := range b {
		b[i] = 'n'
	}
	return b
}
