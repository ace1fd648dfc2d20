package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/httpapi"
)

var (
	leaseMembers = []string{"name", "token", "fence", "mode", "ttl_ms", "acquired_at", "expires_at", "reacquired"}
	renewMembers = []string{"name", "fence", "ttl_ms", "expires_at"}
	stateMembers = []string{"name", "held", "mode", "holders", "waiters"}
)

// holders are those of an inspection.
func (a reply) holders(t testing.TB) (out []object) {
	t.Helper()
	list, ok := a.body["holders"].([]any)
	require.True(t, ok, "an array also when nobody holds it: %s", a.text)
	for _, h := range list {
		holder, ok := h.(object)
		require.True(t, ok)
		out = append(out, holder)
	}
	return out
}

func TestALockIsAcquiredRenewedInspectedReleasedAndForced(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		f := wire(t, r, patience)
		free := f.want(t, 200, "GET", report, nil)
		require.Equal(t, object{"name": "report", "held": false, "mode": nil, "holders": []any{}, "waiters": 0.0},
			free.body)

		lease := f.want(t, 200, "POST", report+"/acquire",
			object{"ttl_ms": 30_000, "owner": "ann", "metadata": object{"pod": "a", "n": 1}})
		require.ElementsMatch(t, leaseMembers, lease.members())
		require.Equal(t, "report", lease.body["name"])
		require.Len(t, lease.string(t, "token"), 26, "128 random bits in base 32")
		require.Equal(t, "exclusive", lease.body["mode"])
		require.Equal(t, false, lease.body["reacquired"])
		fence := lease.number(t, "fence")
		require.Positive(t, fence)
		require.Less(t, fence, int64(1)<<53)
		require.Equal(t, 30*time.Second, lease.instant(t, "expires_at").Sub(lease.instant(t, "acquired_at")))

		state := f.want(t, 200, "GET", report, nil)
		require.ElementsMatch(t, stateMembers, state.members())
		require.Equal(t, true, state.body["held"])
		require.Equal(t, "exclusive", state.body["mode"])
		require.Equal(t, []object{{
			"owner": "ann", "fence": float64(fence), "acquired_at": lease.body["acquired_at"],
			"expires_at": lease.body["expires_at"],
			"metadata":   object{"pod": "a", "n": 1.0},
		}}, state.holders(t))
		require.NotContains(t, state.text, lease.string(t, "token"), "never a token")

		held := object{"token": lease.body["token"], "ttl_ms": 60_000}
		renewed := f.want(t, 200, "POST", report+"/renew", held)
		require.ElementsMatch(t, renewMembers, renewed.members())
		require.Equal(t, fence, renewed.number(t, "fence"))
		require.EqualValues(t, 60_000, renewed.body["ttl_ms"])
		require.True(t, renewed.instant(t, "expires_at").After(lease.instant(t, "expires_at")))

		for range 2 { // the second one's first answer was lost
			released := f.want(t, 200, "POST", report+"/release", object{"token": lease.body["token"]})
			require.Equal(t, object{"released": true}, released.body)
		}
		next := f.want(t, 200, "POST", report+"/acquire", nil)
		require.Greater(t, next.number(t, "fence"), fence)

		require.Equal(t, object{"released": 1.0}, f.want(t, 200, "DELETE", report, nil).body)
		require.Equal(t, object{"released": 0.0}, f.want(t, 200, "DELETE", report, nil).body)
		require.Equal(t, false, f.want(t, 200, "GET", report, nil).body["held"])
		last := f.want(t, 200, "POST", report+"/acquire", nil)
		require.Greater(t, last.number(t, "fence"), next.number(t, "fence"),
			"what the old holder still writes can be refused")
	})
}

func TestASemaphoresPermitsAreAcquiredRenewedInspectedReleasedAndForced(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		f := wire(t, r, patience)
		var permits []reply
		for n := 1; n <= 2; n++ {
			permit := f.want(t, 200, "POST", pool+"/acquire", object{"capacity": 2, "owner": "ann", "ttl_ms": 60_000})
			require.ElementsMatch(t, append([]string{"in_use"}, leaseMembers...), permit.members())
			require.EqualValues(t, n, permit.number(t, "in_use"))
			require.Equal(t, "shared", permit.body["mode"])
			permits = append(permits, permit)
		}
		require.Greater(t, permits[1].number(t, "fence"), permits[0].number(t, "fence"))
		full := f.refused(t, 409, "lock_held", "POST", pool+"/acquire", object{"capacity": 2})
		require.Equal(t, "ann", full.body["holder"])

		token := permits[0].body["token"]
		again := f.want(t, 200, "POST", pool+"/acquire", object{"capacity": 2, "token": token, "ttl_ms": 60_000})
		require.Equal(t, true, again.body["reacquired"])
		require.EqualValues(t, 2, again.number(t, "in_use"), "the same permit")
		renewed := f.want(t, 200, "POST", pool+"/renew", object{"token": token})
		require.ElementsMatch(t, renewMembers, renewed.members())
		require.EqualValues(t, 10_000, renewed.body["ttl_ms"], "the default")

		state := f.want(t, 200, "GET", pool, nil)
		require.Equal(t, "shared", state.body["mode"])
		require.Len(t, state.holders(t), 2)
		require.NotContains(t, state.text, permits[0].string(t, "token"))
		for range 2 {
			f.want(t, 200, "POST", pool+"/release", object{"token": token})
		}
		require.Len(t, f.want(t, 200, "GET", pool, nil).holders(t), 1)
		f.want(t, 200, "POST", pool+"/acquire", object{"capacity": 2})
		require.Equal(t, object{"released": 2.0}, f.want(t, 200, "DELETE", pool, nil).body)
		require.Empty(t, f.want(t, 200, "GET", pool, nil).holders(t))
	})
}

func TestALockAndASemaphoreOfOneNameNeverMeet(t *testing.T) {
	t.Parallel()
	f := start(t)
	lease := f.want(t, 200, "POST", "/v1/locks/x/acquire", nil)
	permit := f.want(t, 200, "POST", "/v1/semaphores/x/acquire", object{"capacity": 1})
	f.refused(t, 409, "lock_not_held", "POST", "/v1/semaphores/x/renew", object{"token": lease.body["token"]})
	f.refused(t, 409, "lock_not_held", "POST", "/v1/locks/x/release", object{"token": permit.body["token"]})
	require.EqualValues(t, 1, f.want(t, 200, "DELETE", "/v1/semaphores/x", nil).body["released"])
	require.Equal(t, true, f.want(t, 200, "GET", "/v1/locks/x", nil).body["held"])
}

func TestAnAcquireThatIsAskedAgainKeepsItsFenceAndItsLabelsAndBeginsItsLeaseAnew(t *testing.T) {
	t.Parallel()
	f := start(t)
	first := f.want(t, 200, "POST", report+"/acquire",
		object{"token": goodKey, "owner": "ann", "metadata": object{"a": 1}, "ttl_ms": 1000_000})
	again := f.want(t, 200, "POST", report+"/acquire", object{"token": goodKey, "owner": "bob", "ttl_ms": 2000_000})
	require.Equal(t, true, again.body["reacquired"])
	require.Equal(t, goodKey, again.body["token"])
	require.Equal(t, first.body["fence"], again.body["fence"])
	require.Equal(t, first.body["acquired_at"], again.body["acquired_at"])
	require.True(t, again.instant(t, "expires_at").After(first.instant(t, "expires_at")))
	holder := f.want(t, 200, "GET", report, nil).holders(t)[0]
	require.Equal(t, "ann", holder["owner"])
	require.Equal(t, object{"a": 1.0}, holder["metadata"])
	require.Equal(t, again.body["expires_at"], holder["expires_at"])
}

func TestWhoMeetsAHolderIsToldWhoAndForHowLong(t *testing.T) {
	t.Parallel()
	f := start(t)
	lease := f.want(t, 200, "POST", report+"/acquire", object{"owner": "ann", "ttl_ms": 60_000})
	shared := f.want(t, 200, "POST", "/v1/locks/read/acquire",
		object{"owner": "ann", "ttl_ms": 60_000, "mode": "shared"})
	permit := f.want(t, 200, "POST", pool+"/acquire", object{"owner": "ann", "ttl_ms": 60_000, "capacity": 1})
	for name, tc := range map[string]struct {
		target string
		body   object
		token  reply
	}{
		"of an exclusive lock":              {report, object{}, lease},
		"of an exclusive lock, by a reader": {report, object{"mode": "shared"}, lease},
		"of a shared lock, by a writer":     {"/v1/locks/read", object{}, shared},
		"of a semaphore that is full":       {pool, object{"capacity": 1}, permit},
		"of a lock that it has in another mode": {report, object{"mode": "shared", "token": lease.body["token"]},
			lease},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.refused(t, 409, "lock_held", "POST", tc.target+"/acquire", tc.body)
			require.Equal(t, "ann", a.body["holder"])
			remaining := a.number(t, "retry_after_ms")
			require.LessOrEqual(t, remaining, int64(60_000))
			require.Greater(t, remaining, int64(60_000)-patience.Milliseconds())
			require.Regexp(t, `^(5\d|60)$`, a.header.Get("Retry-After"), "whole seconds")
			require.NotContains(t, a.text, tc.token.string(t, "token"))
		})
	}
	second := f.want(t, 200, "POST", "/v1/locks/read/acquire", object{"mode": "shared"})
	require.NotEqual(t, shared.body["token"], second.body["token"], "readers share it")
}

func TestATokenThatHoldsNothingIsToldWhy(t *testing.T) {
	t.Parallel()
	f := start(t)
	other := f.want(t, 200, "POST", "/v1/locks/taken/acquire", nil)
	forced := f.want(t, 200, "POST", "/v1/locks/forced/acquire", nil)
	f.want(t, 200, "DELETE", "/v1/locks/forced", nil)
	ended := f.want(t, 200, "POST", "/v1/locks/ended/acquire", object{"ttl_ms": 100})
	require.Eventually(t, func() bool {
		return f.send(t, "GET", "/v1/locks/ended", nil).body["held"] == false
	}, patience, time.Millisecond)
	permit := f.want(t, 200, "POST", pool+"/acquire", object{"capacity": 1})
	for name, tc := range map[string]struct {
		target, token, reason string
		forced                any
	}{
		"a lock that nobody holds":        {report, goodKey, "expired", nil},
		"a lease that has ended":          {"/v1/locks/ended", ended.string(t, "token"), "expired", nil},
		"a lock that somebody else holds": {"/v1/locks/taken", goodKey, "held_by_other", nil},
		"a beginning of the holder's token": {"/v1/locks/taken", other.string(t, "token")[:20], "held_by_other",
			nil},
		"a lock that was taken by force":       {"/v1/locks/forced", forced.string(t, "token"), "expired", true},
		"a semaphore of which it has nothing":  {pool, goodKey, "expired", nil},
		"a semaphore that nobody ever was in":  {"/v1/semaphores/new", goodKey, "expired", nil},
		"a beginning of a permit holder's one": {pool, permit.string(t, "token")[:20], "expired", nil},
	} {
		for _, call := range []string{"/renew", "/release"} {
			a := f.refused(t, 409, "lock_not_held", "POST", tc.target+call, object{"token": tc.token})
			require.Equal(t, tc.reason, a.body["reason"], name+call)
			require.Equal(t, tc.forced, a.body["forced"], name+call)
			require.NotContains(t, a.header, "Retry-After", "waiting never helps")
		}
	}
	require.Equal(t, true, f.want(t, 200, "GET", "/v1/locks/taken", nil).body["held"], "its holder was not disturbed")
	require.Len(t, f.want(t, 200, "GET", pool, nil).holders(t), 1)
}

func TestAnAcquireWithoutABodyHasTheDefaultsOfTheContract(t *testing.T) {
	t.Parallel()
	f := start(t)
	a := f.serve(t, request(t.Context(), t, "POST", report+"/acquire", nil)) // and without a Content-Type
	require.Equal(t, http.StatusOK, a.status, a.text)
	require.EqualValues(t, 10_000, a.body["ttl_ms"])
	require.Equal(t, "exclusive", a.body["mode"])
	holder := f.want(t, 200, "GET", report, nil).holders(t)[0]
	require.Empty(t, holder["owner"], "nobody signed it")
	require.NotContains(t, holder, "metadata")
}

func TestTheOwnerIsTheSignerUnlessItIsNamedAndAForcedReleaseIsLoggedWithIts(t *testing.T) {
	t.Parallel()
	f := start(t)
	const arn = "arn:aws:iam::123456789012:user/ann"
	invoke := func(method, path, body string) events.APIGatewayV2HTTPResponse {
		e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Body: body,
			Headers: map[string]string{"content-type": "application/json"}}
		e.RequestContext.HTTP.Method, e.RequestContext.RequestID = method, "request-7"
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: arn}}
		response, err := httpapi.Lambda(f.http)(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode, response.Body)
		return response
	}
	invoke("POST", report+"/acquire", `{}`)
	require.Equal(t, arn, f.want(t, 200, "GET", report, nil).holders(t)[0]["owner"])
	invoke("POST", pool+"/acquire", `{"capacity":1,"owner":"worker-1"}`)
	require.Equal(t, "worker-1", f.want(t, 200, "GET", pool, nil).holders(t)[0]["owner"])

	f.log.Reset()
	invoke("DELETE", report, "")
	line, _, _ := strings.Cut(f.log.String(), "\n")
	for _, part := range []string{"level=WARN", "lock released by force", "request_id=request-7", "caller=" + arn,
		"kind=lock", "name=report", "holders=1"} {
		require.Contains(t, line, part)
	}
	f.log.Reset()
	invoke("DELETE", pool, "")
	require.Contains(t, f.log.String(), "kind=sem name=pool holders=1")
}

func TestADefectShowsNothingOfItself(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, key := range []string{"{lock:report}", "{sem:pool}"} {
		require.NoError(t, f.redis.Client.LPush(t.Context(), key, "a foreign value").Err())
	}
	for route, body := range routes() {
		f.log.Reset()
		a := f.refused(t, 500, "internal", "POST", route, body)
		require.NotContains(t, a.text, "WRONGTYPE", route)
		require.Contains(t, f.log.String(), "WRONGTYPE", "the log has it")
	}
	for _, method := range []string{"GET", "DELETE"} {
		require.NotContains(t, f.refused(t, 500, "internal", method, report, nil).text, "WRONGTYPE")
	}
}
