package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Getter reads policies from a store. Errors: [ErrNotFound], [ErrUnavailable].
type Getter interface {
	Get(ctx context.Context, name string) (Stored, error)
}

// CacheConfig configures a [Cache].
type CacheConfig struct {
	// MaxAge is the time after which the cache reads a policy again. A change takes effect on every
	// instance within this time. Defaults to 3 s.
	MaxAge time.Duration
	// MaxAbsent is the time after which the cache reads an absent policy again. Defaults to 1 s.
	MaxAbsent time.Duration
	// RefreshWait is the maximum time that a call waits for the store if the cache has an expired
	// version of the policy. Defaults to 100 ms.
	RefreshWait time.Duration
	// MaxEntries is the maximum number of names in the cache. Defaults to 10 000.
	MaxEntries int
}

func (c CacheConfig) withDefaults() CacheConfig {
	if c.MaxAge == 0 {
		c.MaxAge = 3 * time.Second
	}
	if c.MaxAbsent == 0 {
		c.MaxAbsent = time.Second
	}
	if c.RefreshWait == 0 {
		c.RefreshWait = 100 * time.Millisecond
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = 10_000
	}

	return c
}

// Cache holds the policies that an instance uses. It reads an expired policy again on the next Get.
// While the store is unavailable or slow, the cache returns the last version that it read.
type Cache struct {
	store  Getter
	cfg    CacheConfig
	flight singleflight.Group

	mu      sync.Mutex
	entries map[string]entry
}

// Cached is a policy from a [Cache].
type Cached struct {
	Stored
	// Stale reports that the store was unavailable or slow. The policy may have changed since it
	// was read.
	Stale bool
}

// entry is the result of one read: a policy, or ErrNotFound.
type entry struct {
	policy   Cached
	notFound error     // nil if the policy exists
	readAt   time.Time // when the read began
	expires  time.Time // zero after Invalidate
}

// usable reports whether Get may return the entry while the store is unavailable.
func (e entry) usable() bool { return !e.expires.IsZero() && e.notFound == nil }

// NewCache returns an empty cache in front of store.
func NewCache(store Getter, cfg CacheConfig) *Cache {
	return &Cache{store: store, cfg: cfg.withDefaults(), entries: make(map[string]entry)}
}

// Get returns a policy that was read at most MaxAge ago or, while the store is unavailable or slow,
// the last version that was read. Errors: [ErrNotFound]; [ErrUnavailable] if the store is
// unavailable and no version was read before; the error of ctx.
func (c *Cache) Get(ctx context.Context, name string) (Cached, error) {
	last := c.lookup(name)
	if time.Now().Before(last.expires) {
		return last.policy, last.notFound
	}

	var overdue <-chan time.Time // nil, which blocks forever, if last is not usable
	if last.usable() {
		timer := time.NewTimer(c.cfg.RefreshWait)
		defer timer.Stop()
		overdue = timer.C
	}

	// All waiting callers share one read, so it must not end with the context of the first caller.
	read := c.flight.DoChan(name, func() (any, error) { return c.read(context.WithoutCancel(ctx), name) })
	select {
	case result := <-read:
		if errors.Is(result.Err, ErrUnavailable) && last.usable() {
			return c.extend(name, last), nil
		}
		p, _ := result.Val.(Cached)

		return p, result.Err
	case <-overdue:
		return c.extend(name, last), nil
	case <-ctx.Done():
		return Cached{}, fmt.Errorf("error reading policy %q: %w", name, ctx.Err())
	}
}

func (c *Cache) read(ctx context.Context, name string) (Cached, error) {
	began := time.Now()
	p, err := c.store.Get(ctx, name)
	switch {
	case err == nil:
		c.put(name, entry{policy: Cached{Stored: p}, readAt: began, expires: began.Add(c.cfg.MaxAge)})
	case errors.Is(err, ErrNotFound):
		c.put(name, entry{notFound: err, readAt: began, expires: began.Add(c.cfg.MaxAbsent)})
	}

	return Cached{Stored: p}, err
}

// extend returns the last version, marked as stale, and caches it for MaxAbsent. During this time,
// calls return it without waiting for the store.
func (c *Cache) extend(name string, last entry) Cached {
	last.policy.Stale = true
	last.expires = time.Now().Add(c.cfg.MaxAbsent)
	c.put(name, last)

	return last.policy
}

// Invalidate makes the next Get read the policy from the store. Call it after changing a policy, so
// that this instance uses the change immediately.
func (c *Cache) Invalidate(name string) {
	c.flight.Forget(name)
	c.put(name, entry{readAt: time.Now()})
}

func (c *Cache) lookup(name string) entry {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.entries[name]
}

// put stores e, unless the cache has the result of a read that began later. If the cache is full,
// put evicts arbitrary entries.
func (c *Cache) put(name string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()

	before, exists := c.entries[name]
	if exists && before.readAt.After(e.readAt) {
		return
	}
	for other := range c.entries {
		if exists || len(c.entries) < c.cfg.MaxEntries {
			break
		}
		delete(c.entries, other)
	}
	c.entries[name] = e
}
