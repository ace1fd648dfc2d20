package locktest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

func acquireTests() map[string]func(*testing.T, Store) {
	return map[string]func(*testing.T, Store){
		"exclusive: grants one lease at a time":                grantsOneLease,
		"without a token: each call is a separate holder":      generatesTokens,
		"repeated with the token: returns the same lease":      returnsTheSameLease,
		"compares tokens in full":                              comparesTokensInFull,
		"shared: grants several readers, but no writer":        sharesAmongReaders,
		"refuses a token that holds the lock in another mode":  refusesTheOtherMode,
		"concurrent: grants in sequence, with a rising fence":  grantsInSequence,
		"expires_at: is not after the start of the next lease": endsBeforeTheNextLease,
		"held: reports the holder and the remaining lease":     reportsTheHolder,
		"times: are in UTC, and the lease lasts the TTL":       returnsInstants,
		"released: grants a later lease with a higher fence":   raisesTheFence,
		"metadata: is stored without white space, or left nil": storesMetadata,
	}
}

func grantsOneLease(t *testing.T, s Store) {
	req := lock.Request{Name: newName(), Owner: "ann", TTL: ttl}
	ann := acquire(t, s, req)
	require.Positive(t, ann.Fence)
	require.Less(t, ann.Fence, int64(1)<<53)

	req.Owner = "bob"
	_, err := s.Acquire(t.Context(), req)
	require.ErrorIs(t, err, lock.ErrHeld)

	state := inspect(t, s, ann.Key)
	require.True(t, state.Held)
	require.Equal(t, lock.Exclusive, state.Mode)
	require.Len(t, state.Holders, 1)
	require.Equal(t, "ann", state.Holders[0].Owner)
	require.Equal(t, ann.Fence, state.Holders[0].Fence)
}

func generatesTokens(t *testing.T, s Store) {
	req := lock.Request{Name: newName()}
	first := acquire(t, s, req)
	require.GreaterOrEqual(t, len(first.Token), lock.MinToken)
	require.Equal(t, lock.DefaultTTL, first.TTL)
	require.Equal(t, lock.Exclusive, first.Mode)
	require.Equal(t, lock.Key{Kind: lock.Lock, Name: req.Name}, first.Key)

	_, err := s.Acquire(t.Context(), req)
	require.ErrorIs(t, err, lock.ErrHeld)
}

func reportsTheHolder(t *testing.T, s Store) {
	req := lock.Request{Name: newName(), Owner: "ann", TTL: ttl}
	acquire(t, s, req)
	_, err := s.Acquire(t.Context(), req)
	require.Equal(t, "ann", lock.HolderOf(err))
	f := RequireFault(t, err, fault.LockHeld)
	require.Positive(t, f.RetryAfter)
	require.LessOrEqual(t, f.RetryAfter, ttl+time.Second)
}

func returnsInstants(t *testing.T, s Store) {
	lease := acquire(t, s, lock.Request{Name: newName(), TTL: ttl})
	require.InDelta(t, ttl, lease.ExpiresAt.Sub(lease.AcquiredAt), float64(100*time.Millisecond))
	holder := inspect(t, s, lease.Key).Holders[0]
	for _, at := range []time.Time{lease.AcquiredAt, lease.ExpiresAt, holder.AcquiredAt, holder.ExpiresAt} {
		require.Equal(t, time.UTC, at.Location())
		require.WithinDuration(t, time.Now(), at, 2*ttl)
	}
}

func storesMetadata(t *testing.T, s Store) {
	with := acquire(t, s, lock.Request{Name: newName(), Metadata: []byte(`{"pod": "a-1"}`)})
	require.Equal(t, `{"pod":"a-1"}`, string(inspect(t, s, with.Key).Holders[0].Metadata))
	without := acquire(t, s, lock.Request{Name: newName()})
	require.Nil(t, inspect(t, s, without.Key).Holders[0].Metadata)
}

func raisesTheFence(t *testing.T, s Store) {
	req := lock.Request{Name: newName()}
	ann := acquire(t, s, req)
	held, err := s.Release(t.Context(), ann.Key, ann.Token)
	require.NoError(t, err)
	require.Positive(t, held)
	require.Greater(t, acquire(t, s, req).Fence, ann.Fence)
}

// A caller repeats an Acquire whose reply was lost.
func returnsTheSameLease(t *testing.T, s Store) {
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		req := lock.Request{Name: newName(), Mode: mode, Token: newToken(), TTL: ttl}
		first := acquire(t, s, req)
		require.False(t, first.Reacquired)

		req.TTL = 2 * ttl
		again := acquire(t, s, req)
		require.True(t, again.Reacquired, mode)
		require.Equal(t, first.Fence, again.Fence, mode)
		requireLonger(t, first.ExpiresAt, again.ExpiresAt, ttl)
	}
}

// The library bsm/redislock compares custom tokens by prefix, so the token "job-1" steals the lock
// of "job-10".
func comparesTokensInFull(t *testing.T, s Store) {
	token := strings.Repeat("k", 16) + "-10"
	key := acquire(t, s, lock.Request{Name: newName(), Token: token, TTL: time.Minute}).Key
	for _, other := range []string{token[:len(token)-1], token + "0", strings.ToUpper(token)} {
		_, err := s.Acquire(t.Context(), lock.Request{Name: key.Name, Token: other})
		require.ErrorIs(t, err, lock.ErrHeld)
		_, err = s.Release(t.Context(), key, other)
		require.ErrorIs(t, err, lock.ErrNotHeld)
	}
}

func sharesAmongReaders(t *testing.T, s Store) {
	ctx, name := t.Context(), newName()
	var readers []lock.Lease
	last := int64(0)
	for range 3 {
		reader := acquire(t, s, lock.Request{Name: name, Mode: lock.Shared, Owner: "reader", TTL: time.Minute})
		require.Greater(t, reader.Fence, last)
		last = reader.Fence
		readers = append(readers, reader)
	}
	_, err := s.Acquire(ctx, lock.Request{Name: name, Owner: "writer"})
	require.ErrorIs(t, err, lock.ErrHeld)
	require.Equal(t, "reader", lock.HolderOf(err))

	state := inspect(t, s, readers[0].Key)
	require.Equal(t, lock.Shared, state.Mode)
	require.Len(t, state.Holders, 3)
	for i, reader := range readers {
		_, err = s.Renew(ctx, reader.Key, reader.Token, time.Minute)
		require.NoError(t, err)
		_, err = s.Release(ctx, reader.Key, reader.Token)
		require.NoError(t, err)
		require.Len(t, inspect(t, s, reader.Key).Holders, 2-i)
	}

	writer := acquire(t, s, lock.Request{Name: name, TTL: time.Minute})
	require.Greater(t, writer.Fence, last)
	_, err = s.Acquire(ctx, lock.Request{Name: name, Mode: lock.Shared})
	require.ErrorIs(t, err, lock.ErrHeld)
}

func refusesTheOtherMode(t *testing.T, s Store) {
	for mode, other := range map[lock.Mode]lock.Mode{lock.Exclusive: lock.Shared, lock.Shared: lock.Exclusive} {
		req := lock.Request{Name: newName(), Token: newToken(), Mode: mode, TTL: time.Minute}
		first := acquire(t, s, req)
		req.Mode, req.Wait = other, 100*time.Millisecond
		_, err := s.Acquire(t.Context(), req)
		require.ErrorIs(t, err, lock.ErrHeld)

		renewed, err := s.Renew(t.Context(), first.Key, req.Token, time.Minute)
		require.NoError(t, err, "the token keeps its lease")
		require.Equal(t, first.Fence, renewed.Fence)
	}
}

func endsBeforeTheNextLease(t *testing.T, s Store) {
	name := newName()
	expired := acquire(t, s, lock.Request{Name: name, TTL: lock.MinTTL})
	next := acquire(t, s, lock.Request{Name: name, Wait: lock.MaxWait})
	require.False(t, next.AcquiredAt.Before(expired.ExpiresAt))
}

func grantsInSequence(t *testing.T, s Store) {
	const callers = 6
	req := lock.Request{Name: newName(), Wait: lock.MaxWait, TTL: time.Minute}
	var (
		mu                sync.Mutex
		holders, overlaps int
		fences            []int64
		done              sync.WaitGroup
	)
	for range callers {
		done.Go(func() {
			lease, err := s.Acquire(t.Context(), req)
			if err != nil {
				return
			}
			mu.Lock()
			if holders++; holders > 1 {
				overlaps++
			}
			fences = append(fences, lease.Fence)
			mu.Unlock()

			<-time.After(5 * time.Millisecond) // gives another caller time to overlap

			mu.Lock()
			holders--
			mu.Unlock()
			_, _ = s.Release(t.Context(), lease.Key, lease.Token)
		})
	}
	done.Wait()
	require.Zero(t, overlaps)
	require.Len(t, fences, callers)
	require.IsIncreasing(t, fences)
}
