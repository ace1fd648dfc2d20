package dynamopolicy_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
)

// Conditions of a write.
var (
	always   = dynamopolicy.Condition{}
	absent   = dynamopolicy.Condition{Absent: true}
	existing = dynamopolicy.Condition{ETag: "*"}
)

func matching(s policy.Stored) dynamopolicy.Condition { return dynamopolicy.Condition{ETag: s.ETag()} }

func open(t *testing.T) *dynamopolicy.Store {
	t.Helper()
	a := awstest.Start(t)
	return dynamopolicy.New(a.DynamoDB, a.CreateTable(t, dynamopolicy.TableInput(redistest.Name("policies"))))
}

// limited returns a valid policy with one rule.
func limited(t *testing.T, name string, limit int64) policy.Policy {
	t.Helper()
	p, err := policy.Policy{Name: name, Rules: []policy.Rule{{Name: "r", Algorithm: policy.GCRA, Limit: limit,
		Window: time.Second}}}.Normalize()
	require.NoError(t, err)
	return p
}

func put(t *testing.T, s *dynamopolicy.Store, name string, limit int64, when dynamopolicy.Condition) policy.Stored {
	t.Helper()
	stored, _, err := s.Put(t.Context(), limited(t, name, limit), when)
	require.NoError(t, err)
	return stored
}

func TestPut(t *testing.T) {
	t.Parallel()
	t.Run("stored policy: is read unchanged", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		p := limited(t, "login", 5)
		p.Description, p.NoDenyCache = "ü", true
		p.Overrides = []policy.Override{{Key: "bot-*", Mode: policy.Deny}, {Key: "gold", Rules: p.Rules}}
		_, err := s.Get(t.Context(), "login")
		require.ErrorIs(t, err, policy.ErrNotFound)

		stored, created, err := s.Put(t.Context(), p, always)
		require.NoError(t, err)
		require.True(t, created)
		require.EqualValues(t, 1, stored.Version)
		require.WithinDuration(t, time.Now(), stored.UpdatedAt, time.Minute)
		require.Zero(t, stored.UpdatedAt.Nanosecond()%int(time.Millisecond), "the API has a resolution of milliseconds")

		read, err := s.Get(t.Context(), "login")
		require.NoError(t, err)
		require.Equal(t, stored, read)
		require.Equal(t, p, read.Policy)
		require.Equal(t, stored.ETag(), read.ETag())

		stored, created, err = s.Put(t.Context(), p, always)
		require.NoError(t, err)
		require.False(t, created)
		require.EqualValues(t, 2, stored.Version)
	})

	t.Run("invalid policy: is refused", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		_, _, err := s.Put(t.Context(), policy.Policy{Name: "login"}, always)
		require.ErrorIs(t, err, policy.ErrInvalid)
		_, err = s.Get(t.Context(), "login")
		require.ErrorIs(t, err, policy.ErrNotFound)
	})

	t.Run("condition: decides whether the policy is written", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		first := put(t, s, "old", 1, absent)
		second := put(t, s, "old", 2, matching(first))
		for _, tc := range []struct {
			name, policy string
			when         dynamopolicy.Condition
			want         fault.Code
		}{
			{"must be absent, is absent", "new-1", absent, ""},
			{"must be absent, is stored", "old", absent, fault.PreconditionFailed},
			{"must be stored, is stored", "old", existing, ""},
			{"must be stored, is absent", "new-2", existing, fault.PreconditionFailed},
			{"must have a given version, has a newer one", "old", matching(first), fault.PreconditionFailed},
			{"must have a given version, is absent", "new-3", matching(second), fault.PreconditionFailed},
		} {
			_, _, err := s.Put(t.Context(), limited(t, tc.policy, 9), tc.when)
			require.Equal(t, tc.want, fault.CodeOf(err), "%s: %v", tc.name, err)
		}
		_, _, err := s.Put(t.Context(), limited(t, "old", 9), matching(first))
		var f *fault.Error
		require.ErrorAs(t, err, &f)
		current, err := s.Get(t.Context(), "old")
		require.NoError(t, err)
		require.Equal(t, current.ETag(), f.Extra["etag"], "the error contains the current ETag")
	})

	t.Run("concurrent conditional writes: one succeeds", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for _, when := range []func() dynamopolicy.Condition{
			func() dynamopolicy.Condition { return absent },
			func() dynamopolicy.Condition {
				current, err := s.Get(t.Context(), "p")
				require.NoError(t, err)
				return matching(current)
			},
		} {
			condition := when()
			var won atomic.Int64
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() {
					_, _, err := s.Put(t.Context(), limited(t, "p", int64(i+1)), condition)
					switch fault.CodeOf(err) {
					case "":
						won.Add(1)
					case fault.PreconditionFailed:
					default:
						t.Errorf("unexpected: %v", err)
					}
				})
			}
			wait.Wait()
			require.EqualValues(t, 1, won.Load())
		}
	})

	t.Run("concurrent unconditional writes: all succeed", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				if _, _, err := s.Put(t.Context(), limited(t, "p", int64(i+1)), always); err != nil {
					t.Errorf("unexpected: %v", err)
				}
			})
		}
		wait.Wait()
		current, err := s.Get(t.Context(), "p")
		require.NoError(t, err)
		require.EqualValues(t, 4, current.Version, "every write was stored")
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.ErrorIs(t, s.Delete(t.Context(), "p", always), policy.ErrNotFound)
	require.ErrorIs(t, s.Delete(t.Context(), "p", existing), policy.ErrPreconditionFailed)
	first := put(t, s, "p", 1, absent)
	second := put(t, s, "p", 2, always)
	require.ErrorIs(t, s.Delete(t.Context(), "p", matching(first)), policy.ErrPreconditionFailed)
	require.NoError(t, s.Delete(t.Context(), "p", matching(second)))

	_, err := s.Get(t.Context(), "p")
	require.ErrorIs(t, err, policy.ErrNotFound)
	require.ErrorIs(t, s.Delete(t.Context(), "p", always), policy.ErrNotFound)
	_, _, err = s.Put(t.Context(), limited(t, "p", 2), matching(second))
	require.ErrorIs(t, err, policy.ErrPreconditionFailed)
	page, _, err := s.List(t.Context(), 10, "")
	require.NoError(t, err)
	require.Empty(t, page)

	again, created, err := s.Put(t.Context(), limited(t, "p", 2), absent)
	require.NoError(t, err)
	require.True(t, created)
	require.Greater(t, again.Version, second.Version)
	require.NotEqual(t, second.ETag(), again.ETag(), "the same content with a different version")
}

func TestList(t *testing.T) {
	t.Parallel()
	s := open(t)
	var want []string
	for i := range 12 {
		name := fmt.Sprintf("p%02d", i)
		put(t, s, name, 1, absent)
		if i%3 == 1 {
			require.NoError(t, s.Delete(t.Context(), name, always))
		} else {
			want = append(want, name)
		}
	}
	var got []string
	pages := 0
	for cursor := ""; ; pages++ {
		page, next, err := s.List(t.Context(), 3, cursor)
		require.NoError(t, err)
		for _, p := range page {
			got = append(got, p.Name)
			require.Positive(t, p.Version)
		}
		if cursor = next; cursor == "" {
			break
		}
		require.Len(t, page, 3, "every page except the last has as many policies as the limit")
	}
	slices.Sort(got)
	require.Equal(t, want, got)
	require.LessOrEqual(t, pages, 3)

	for _, limit := range []int{-1, 0, dynamopolicy.MaxPage + 1} {
		_, _, err := s.List(t.Context(), limit, "")
		require.ErrorIs(t, err, policy.ErrInvalid, limit)
	}
	for _, cursor := range []string{"???", "", "Li4v"} { // not base64, the first page, not a name
		_, _, err := s.List(t.Context(), 3, cursor)
		require.Equal(t, cursor != "", fault.CodeOf(err) == fault.InvalidRequest, cursor)
	}
}

func TestUnreachableTable(t *testing.T) {
	t.Parallel()
	cfg := awstest.Start(t).Config
	cfg.BaseEndpoint = aws.String("http://127.0.0.1:1")
	cfg.RetryMaxAttempts = 1
	s := dynamopolicy.New(dynamodb.NewFromConfig(cfg), "policies")
	_, err := s.Get(t.Context(), "p")
	require.ErrorIs(t, err, policy.ErrUnavailable)
	_, _, err = s.Put(t.Context(), limited(t, "p", 1), always)
	require.ErrorIs(t, err, policy.ErrUnavailable)
	require.ErrorIs(t, s.Delete(t.Context(), "p", always), policy.ErrUnavailable)
	_, _, err = s.List(t.Context(), 1, "")
	require.ErrorIs(t, err, policy.ErrUnavailable)
	require.ErrorIs(t, s.Ping(t.Context()), policy.ErrUnavailable)
}
