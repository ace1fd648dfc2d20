package delayqueue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// Each argument is tested at its bounds and one step outside them.
func TestArguments(t *testing.T) {
	t.Parallel()
	q := newQueues(t, redistest.Single(t), Config{Shards: 1})
	put(t, q, "orders", simple("a", time.Hour))
	ids := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = "unknown"
		}
		return out
	}
	list := func(o ListOptions) func(context.Context) error {
		return func(ctx context.Context) error { return errorOf(q.List(ctx, "orders", o)) }
	}
	redrive := func(o RedriveOptions) func(context.Context) error {
		return func(ctx context.Context) error { return errorOf(q.Redrive(ctx, "orders", o)) }
	}
	ack := func(attempt int) func(context.Context) error {
		return func(ctx context.Context) error { return errorOf(q.Ack(ctx, "orders", "a", attempt)) }
	}
	nack := func(attempt int, delay time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			return errorOf(q.Nack(ctx, "orders", "a", attempt, NackOptions{Delay: &delay}))
		}
	}
	pause := func(until time.Time) func(context.Context) error {
		return func(ctx context.Context) error { return q.Pause(ctx, "paused", until) }
	}
	claim := func(shard, limit int, lease time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { return errorOf(q.Claim(ctx, "orders", shard, limit, lease)) }
	}
	maintain := func(shard, limit int) func(context.Context) error {
		return func(ctx context.Context) error { return errorOf(q.Maintain(ctx, "orders", shard, limit)) }
	}
	for name, c := range map[string]struct {
		call    func(context.Context) error
		refused []string
	}{
		"List: limit at its minimum":        {list(ListOptions{Limit: 1}), nil},
		"List: limit under its minimum":     {list(ListOptions{Limit: -1}), []string{"limit"}},
		"List: limit at its maximum":        {list(ListOptions{Limit: MaxPage}), nil},
		"List: limit over its maximum":      {list(ListOptions{Limit: MaxPage + 1}), []string{"limit"}},
		"List: a valid state":               {list(ListOptions{State: Dead}), nil},
		"List: invalid state and limit":     {list(ListOptions{State: "gone", Limit: -1}), []string{"state", "limit"}},
		"List: an invalid cursor":           {list(ListOptions{Cursor: "x"}), []string{"cursor"}},
		"Redrive: no options":               {redrive(RedriveOptions{}), nil},
		"Redrive: limit at its minimum":     {redrive(RedriveOptions{Limit: 1}), nil},
		"Redrive: limit under its minimum":  {redrive(RedriveOptions{Limit: -1}), []string{"limit"}},
		"Redrive: limit at its maximum":     {redrive(RedriveOptions{Limit: MaxRedrive}), nil},
		"Redrive: limit over its maximum":   {redrive(RedriveOptions{Limit: MaxRedrive + 1}), []string{"limit"}},
		"Redrive: IDs at their maximum":     {redrive(RedriveOptions{IDs: ids(MaxBatch)}), nil},
		"Redrive: IDs over their maximum":   {redrive(RedriveOptions{IDs: ids(MaxBatch + 1)}), []string{"ids"}},
		"Redrive: an empty list of IDs":     {redrive(RedriveOptions{IDs: []string{}}), []string{"ids"}},
		"Redrive: an invalid ID":            {redrive(RedriveOptions{IDs: []string{"a", "a b"}}), []string{"ids"}},
		"Redrive: IDs and a limit":          {redrive(RedriveOptions{IDs: ids(1), Limit: 1}), []string{"limit"}},
		"Ack: attempt under its minimum":    {ack(0), []string{"attempt"}},
		"Ack: attempt over its maximum":     {ack(MaxAttempts + 1), []string{"attempt"}},
		"Nack: delay under its minimum":     {nack(1, -time.Millisecond), []string{"delay_ms"}},
		"Nack: delay over its maximum":      {nack(1, MaxDelay+1), []string{"delay_ms"}},
		"Nack: invalid attempt and delay":   {nack(0, -time.Hour), []string{"attempt", "delay_ms"}},
		"Pause: end at its maximum":         {pause(time.Now().Add(MaxDelay)), nil},
		"Pause: end over its maximum":       {pause(time.Now().Add(MaxDelay + time.Minute)), []string{"until"}},
		"Pause: end in the past":            {pause(time.UnixMilli(0)), nil},
		"Claim: all at their minimum":       {claim(0, 1, 1), nil},
		"Claim: limit at its maximum":       {claim(0, MaxBatch, time.Minute), nil},
		"Claim: limit over its maximum":     {claim(0, MaxBatch+1, time.Minute), []string{"limit"}},
		"Claim: all under their minimum":    {claim(-1, 0, 0), []string{"shard", "limit", "lease_ms"}},
		"Claim: shard at its maximum":       {claim(MaxShards-1, 1, time.Minute), nil},
		"Claim: shard over its maximum":     {claim(MaxShards, 1, time.Minute), []string{"shard"}},
		"Maintain: limit at its maximum":    {maintain(0, MaxBatch), nil},
		"Maintain: limit over its maximum":  {maintain(0, MaxBatch+1), []string{"limit"}},
		"Maintain: all under their minimum": {maintain(-1, 0), []string{"shard", "limit"}},
		"Reschedule: nothing to change": {
			func(ctx context.Context) error { return errorOf(q.Reschedule(ctx, "orders", "a", Change{})) },
			[]string{"body"},
		},
		"Get: invalid queue and ID": {
			func(ctx context.Context) error { return errorOf(q.Get(ctx, "a b", "{a}")) },
			[]string{"queue", "id"},
		},
		"Cancel: an empty ID": {
			func(ctx context.Context) error { return errorOf(q.Cancel(ctx, "orders", "")) },
			[]string{"id"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.refused, invalidFields(t, c.call(t.Context())))
		})
	}

	t.Run("an attempt at its bounds is valid", func(t *testing.T) {
		t.Parallel()
		require.ErrorIs(t, ack(1)(t.Context()), ErrConflict)
		require.ErrorIs(t, ack(MaxAttempts)(t.Context()), ErrConflict)
		require.ErrorIs(t, nack(1, 0)(t.Context()), ErrConflict)
		require.ErrorIs(t, nack(MaxAttempts, MaxDelay)(t.Context()), ErrConflict)
	})
}

// A closing brace in a queue name would end the hash tag of the queue's keys.
func TestQueueName(t *testing.T) {
	t.Parallel()
	q := newQueues(t, redistest.Single(t), Config{Shards: 1})
	for name, call := range map[string]func(context.Context, string) error{
		"Push": func(ctx context.Context, queue string) error {
			return errorOf(q.Push(ctx, queue, simple("a", 0)))
		},
		"Stats":    func(ctx context.Context, queue string) error { return errorOf(q.Stats(ctx, queue)) },
		"Claim":    func(ctx context.Context, queue string) error { return errorOf(q.Claim(ctx, queue, 0, 1, 1)) },
		"Accept":   func(ctx context.Context, queue string) error { return errorOf(q.Accept(ctx, queue, 0, nil)) },
		"Requeue":  func(ctx context.Context, queue string) error { return errorOf(q.Requeue(ctx, queue, 0, nil)) },
		"Maintain": func(ctx context.Context, queue string) error { return errorOf(q.Maintain(ctx, queue, 0, 1)) },
		"List":     func(ctx context.Context, queue string) error { return errorOf(q.List(ctx, queue, ListOptions{})) },
		"Redrive": func(ctx context.Context, queue string) error {
			return errorOf(q.Redrive(ctx, queue, RedriveOptions{}))
		},
		"Pause":  func(ctx context.Context, queue string) error { return q.Pause(ctx, queue, time.Time{}) },
		"Resume": q.Resume,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, queue := range []string{"", "a}b", "a b", strings.Repeat("a", 129)} {
				require.Equal(t, []string{"queue"}, invalidFields(t, call(t.Context(), queue)), queue)
			}
			require.NoError(t, call(t.Context(), strings.Repeat("a", 128)))
		})
	}
}

func TestFromClient(t *testing.T) {
	t.Parallel()
	client := redistest.Single(t).Client

	t.Run("fills in the defaults", func(t *testing.T) {
		t.Parallel()
		q, err := FromClient(client, Config{})
		require.NoError(t, err)
		require.Equal(t, Config{
			Shards: 4, DedupWindow: time.Hour, DeadRetention: 14 * 24 * time.Hour, MaxLapses: 100,
		}, q.cfg)
		require.NoError(t, q.Ping(t.Context()))
	})

	for field, c := range map[string]struct{ accepted, refused []Config }{
		"Shards": {
			accepted: []Config{{Shards: 1}, {Shards: 256}},
			refused:  []Config{{Shards: -1}, {Shards: 257}},
		},
		"DedupWindow": {
			accepted: []Config{{DedupWindow: time.Millisecond}},
			refused:  []Config{{DedupWindow: time.Millisecond - 1}, {DedupWindow: -1}},
		},
		"DeadRetention": {
			accepted: []Config{{DeadRetention: time.Millisecond}},
			refused:  []Config{{DeadRetention: time.Millisecond - 1}, {DeadRetention: -1}},
		},
		"MaxLapses": {
			accepted: []Config{{MaxLapses: 1}},
			refused:  []Config{{MaxLapses: -1}},
		},
	} {
		t.Run("checks "+field, func(t *testing.T) {
			t.Parallel()
			for _, cfg := range c.accepted {
				_, err := FromClient(client, cfg)
				require.NoError(t, err)
			}
			for _, cfg := range c.refused {
				_, err := FromClient(client, cfg)
				require.ErrorContains(t, err, field)
			}
		})
	}
}
