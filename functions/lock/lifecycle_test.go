package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

var (
	leaseMembers = []string{"name", "token", "fence", "mode", "ttl_ms", "acquired_at", "expires_at", "reacquired"}
	renewMembers = []string{"name", "fence", "ttl_ms", "expires_at"}
	stateMembers = []string{"name", "held", "mode", "holders", "waiters"}
)

func TestLifecycle(t *testing.T) {
	t.Parallel()
	t.Run("a lock: acquire, renew, inspect, release, force", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			f := wire(t, r, patience)
			free := f.Want(t, 200, "GET", report, nil)
			require.Equal(t, object{"name": "report", "held": false, "mode": nil, "holders": []any{}, "waiters": 0.0},
				free.Body)

			lease := f.Want(t, 200, "POST", report+"/acquire",
				object{"ttl_ms": 30_000, "owner": "ann", "metadata": object{"pod": "a", "n": 1}})
			require.ElementsMatch(t, leaseMembers, lease.Members())
			require.Equal(t, "report", lease.Body["name"])
			require.Len(t, lease.String(t, "token"), 26, "128 random bits in base 32")
			require.Equal(t, "exclusive", lease.Body["mode"])
			require.Equal(t, false, lease.Body["reacquired"])
			fence := lease.Number(t, "fence")
			require.Positive(t, fence)
			require.Less(t, fence, int64(1)<<53)
			require.Equal(t, 30*time.Second, lease.Instant(t, "expires_at").Sub(lease.Instant(t, "acquired_at")))

			state := f.Want(t, 200, "GET", report, nil)
			require.ElementsMatch(t, stateMembers, state.Members())
			require.Equal(t, true, state.Body["held"])
			require.Equal(t, "exclusive", state.Body["mode"])
			require.Equal(t, []object{{
				"owner": "ann", "fence": float64(fence), "acquired_at": lease.Body["acquired_at"],
				"expires_at": lease.Body["expires_at"],
				"metadata":   object{"pod": "a", "n": 1.0},
			}}, state.Objects(t, "holders"))
			require.NotContains(t, state.Text, lease.String(t, "token"), "an inspection shows no token")

			held := object{"token": lease.Body["token"], "ttl_ms": 60_000}
			renewed := f.Want(t, 200, "POST", report+"/renew", held)
			require.ElementsMatch(t, renewMembers, renewed.Members())
			require.Equal(t, fence, renewed.Number(t, "fence"))
			require.EqualValues(t, 60_000, renewed.Body["ttl_ms"])
			require.True(t, renewed.Instant(t, "expires_at").After(lease.Instant(t, "expires_at")))

			for range 2 { // a repeated release succeeds
				released := f.Want(t, 200, "POST", report+"/release", object{"token": lease.Body["token"]})
				require.Equal(t, object{"released": true}, released.Body)
			}
			next := f.Want(t, 200, "POST", report+"/acquire", nil)
			require.Greater(t, next.Number(t, "fence"), fence)

			require.Equal(t, object{"released": 1.0}, f.Want(t, 200, "DELETE", report, nil).Body)
			require.Equal(t, object{"released": 0.0}, f.Want(t, 200, "DELETE", report, nil).Body)
			require.Equal(t, false, f.Want(t, 200, "GET", report, nil).Body["held"])
			last := f.Want(t, 200, "POST", report+"/acquire", nil)
			require.Greater(t, last.Number(t, "fence"), next.Number(t, "fence"),
				"a higher fence lets resources refuse later writes of the old holder")
		})
	})

	t.Run("a semaphore: acquire, renew, inspect, release, force", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			f := wire(t, r, patience)
			var permits []apitest.Reply
			body := object{"capacity": 2, "owner": "ann", "ttl_ms": 60_000}
			for n := 1; n <= 2; n++ {
				permit := f.Want(t, 200, "POST", pool+"/acquire", body)
				require.ElementsMatch(t, append([]string{"in_use"}, leaseMembers...), permit.Members())
				require.EqualValues(t, n, permit.Number(t, "in_use"))
				require.Equal(t, "shared", permit.Body["mode"])
				permits = append(permits, permit)
			}
			require.Greater(t, permits[1].Number(t, "fence"), permits[0].Number(t, "fence"))
			full := f.WantProblem(t, 409, "lock_held", "POST", pool+"/acquire", object{"capacity": 2})
			require.Equal(t, "ann", full.Body["holder"])

			token := permits[0].Body["token"]
			again := f.Want(t, 200, "POST", pool+"/acquire", object{"capacity": 2, "token": token, "ttl_ms": 60_000})
			require.Equal(t, true, again.Body["reacquired"])
			require.EqualValues(t, 2, again.Number(t, "in_use"), "the same permit")
			renewed := f.Want(t, 200, "POST", pool+"/renew", object{"token": token})
			require.ElementsMatch(t, renewMembers, renewed.Members())
			require.EqualValues(t, 10_000, renewed.Body["ttl_ms"], "the default")

			state := f.Want(t, 200, "GET", pool, nil)
			require.Equal(t, "shared", state.Body["mode"])
			require.Len(t, state.Objects(t, "holders"), 2)
			require.NotContains(t, state.Text, permits[0].String(t, "token"))
			for range 2 {
				f.Want(t, 200, "POST", pool+"/release", object{"token": token})
			}
			require.Len(t, f.Want(t, 200, "GET", pool, nil).Objects(t, "holders"), 1)
			f.Want(t, 200, "POST", pool+"/acquire", object{"capacity": 2})
			require.Equal(t, object{"released": 2.0}, f.Want(t, 200, "DELETE", pool, nil).Body)
			require.Empty(t, f.Want(t, 200, "GET", pool, nil).Objects(t, "holders"))
		})
	})

	t.Run("a lock and a semaphore with the same name are independent", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		lease := f.Want(t, 200, "POST", "/v1/locks/x/acquire", nil)
		permit := f.Want(t, 200, "POST", "/v1/semaphores/x/acquire", object{"capacity": 1})
		f.WantProblem(t, 409, "lock_not_held", "POST", "/v1/semaphores/x/renew", object{"token": lease.Body["token"]})
		f.WantProblem(t, 409, "lock_not_held", "POST", "/v1/locks/x/release", object{"token": permit.Body["token"]})
		require.EqualValues(t, 1, f.Want(t, 200, "DELETE", "/v1/semaphores/x", nil).Body["released"])
		require.Equal(t, true, f.Want(t, 200, "GET", "/v1/locks/x", nil).Body["held"])
	})
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	t.Run("repeated: keeps the fence, the owner and the metadata, and restarts the lease", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		first := f.Want(t, 200, "POST", report+"/acquire",
			object{"token": goodKey, "owner": "ann", "metadata": object{"a": 1}, "ttl_ms": 1000_000})
		again := f.Want(t, 200, "POST", report+"/acquire", object{"token": goodKey, "owner": "bob", "ttl_ms": 2000_000})
		require.Equal(t, true, again.Body["reacquired"])
		require.Equal(t, goodKey, again.Body["token"])
		require.Equal(t, first.Body["fence"], again.Body["fence"])
		require.Equal(t, first.Body["acquired_at"], again.Body["acquired_at"])
		require.True(t, again.Instant(t, "expires_at").After(first.Instant(t, "expires_at")))
		holder := f.Want(t, 200, "GET", report, nil).Objects(t, "holders")[0]
		require.Equal(t, "ann", holder["owner"])
		require.Equal(t, object{"a": 1.0}, holder["metadata"])
		require.Equal(t, again.Body["expires_at"], holder["expires_at"])
	})

	t.Run("held: reports the holder and the remaining lease", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		lease := f.Want(t, 200, "POST", report+"/acquire", object{"owner": "ann", "ttl_ms": 60_000})
		shared := f.Want(t, 200, "POST", "/v1/locks/read/acquire",
			object{"owner": "ann", "ttl_ms": 60_000, "mode": "shared"})
		permit := f.Want(t, 200, "POST", pool+"/acquire", object{"owner": "ann", "ttl_ms": 60_000, "capacity": 1})
		for name, tc := range map[string]struct {
			target string
			body   object
			token  apitest.Reply
		}{
			"an exclusive lock":               {report, object{}, lease},
			"an exclusive lock, for a reader": {report, object{"mode": "shared"}, lease},
			"a shared lock, for a writer":     {"/v1/locks/read", object{}, shared},
			"a full semaphore":                {pool, object{"capacity": 1}, permit},
			"a lock that the token holds in exclusive mode": {
				report, object{"mode": "shared", "token": lease.Body["token"]}, lease,
			},
		} {
			t.Run(name, func(t *testing.T) {
				a := f.WantProblem(t, 409, "lock_held", "POST", tc.target+"/acquire", tc.body)
				require.Equal(t, "ann", a.Body["holder"])
				remaining := a.Number(t, "retry_after_ms")
				require.LessOrEqual(t, remaining, int64(60_000))
				require.Greater(t, remaining, int64(60_000)-patience.Milliseconds())
				require.Regexp(t, `^(5\d|60)$`, a.Header.Get("Retry-After"), "in seconds")
				require.NotContains(t, a.Text, tc.token.String(t, "token"))
			})
		}
		second := f.Want(t, 200, "POST", "/v1/locks/read/acquire", object{"mode": "shared"})
		require.NotEqual(t, shared.Body["token"], second.Body["token"], "readers share the lock")
	})

	t.Run("without a body: uses the defaults", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		// A request without a body has no Content-Type.
		a := f.Serve(t, apitest.NewRequest(t.Context(), t, "POST", report+"/acquire", nil))
		require.Equal(t, http.StatusOK, a.Status, a.Text)
		require.EqualValues(t, 10_000, a.Body["ttl_ms"])
		require.Equal(t, "exclusive", a.Body["mode"])
		holder := f.Want(t, 200, "GET", report, nil).Objects(t, "holders")[0]
		require.Empty(t, holder["owner"], "the request is not signed")
		require.NotContains(t, holder, "metadata")
	})

	t.Run("without an owner: records the caller's identity", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.invoke(t, "POST", report+"/acquire", `{}`)
		require.Equal(t, callerARN, f.Want(t, 200, "GET", report, nil).Objects(t, "holders")[0]["owner"])
		f.invoke(t, "POST", pool+"/acquire", `{"capacity":1,"owner":"worker-1"}`)
		require.Equal(t, "worker-1", f.Want(t, 200, "GET", pool, nil).Objects(t, "holders")[0]["owner"])
	})
}

func TestRenewAndRelease(t *testing.T) {
	t.Parallel()
	t.Run("not held: reports why", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		other := f.Want(t, 200, "POST", "/v1/locks/taken/acquire", nil)
		forced := f.Want(t, 200, "POST", "/v1/locks/forced/acquire", nil)
		f.Want(t, 200, "DELETE", "/v1/locks/forced", nil)
		ended := f.Want(t, 200, "POST", "/v1/locks/ended/acquire", object{"ttl_ms": 100})
		require.Eventually(t, func() bool {
			return f.Send(t, "GET", "/v1/locks/ended", nil).Body["held"] == false
		}, patience, time.Millisecond)
		permit := f.Want(t, 200, "POST", pool+"/acquire", object{"capacity": 1})
		for name, tc := range map[string]struct {
			target, token, reason string
			forced                any
		}{
			"a free lock":              {report, goodKey, "expired", nil},
			"a lease that has ended":   {"/v1/locks/ended", ended.String(t, "token"), "expired", nil},
			"a lock of another holder": {"/v1/locks/taken", goodKey, "held_by_other", nil},
			"a prefix of the holder's token": {
				"/v1/locks/taken", other.String(t, "token")[:20], "held_by_other", nil,
			},
			"a lock that was released by force": {"/v1/locks/forced", forced.String(t, "token"), "expired", true},
			"a semaphore of other holders":      {pool, goodKey, "expired", nil},
			"a semaphore without holders":       {"/v1/semaphores/new", goodKey, "expired", nil},
			"a prefix of the token of a permit": {pool, permit.String(t, "token")[:20], "expired", nil},
		} {
			for _, call := range []string{"/renew", "/release"} {
				a := f.WantProblem(t, 409, "lock_not_held", "POST", tc.target+call, object{"token": tc.token})
				require.Equal(t, tc.reason, a.Body["reason"], name+call)
				require.Equal(t, tc.forced, a.Body["forced"], name+call)
				require.NotContains(t, a.Header, "Retry-After", "waiting does not help")
			}
		}
		require.Equal(t, true, f.Want(t, 200, "GET", "/v1/locks/taken", nil).Body["held"], "the holder keeps the lock")
		require.Len(t, f.Want(t, 200, "GET", pool, nil).Objects(t, "holders"), 1)
	})
}

func TestInternalError(t *testing.T) {
	t.Parallel()
	t.Run("is logged and not disclosed", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for _, key := range []string{"{lock:report}", "{sem:pool}"} {
			require.NoError(t, f.redis.Client.LPush(t.Context(), key, "a value of the wrong type").Err())
		}
		for route, body := range routes() {
			f.Log.Reset()
			a := f.WantProblem(t, 500, "internal", "POST", route, body)
			require.NotContains(t, a.Text, "WRONGTYPE", route)
			require.Contains(t, f.Log.String(), "WRONGTYPE", "the log has the cause")
		}
		for _, method := range []string{"GET", "DELETE"} {
			require.NotContains(t, f.WantProblem(t, 500, "internal", method, report, nil).Text, "WRONGTYPE")
		}
	})
}
