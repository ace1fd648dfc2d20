package policy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/sluicehq/sluice/shared/fault"
)

// Getter reads policies from the store. Errors: policy_not_found, store_unavailable.
type Getter interface {
	Get(ctx context.Context, name string) (Stored, error)
}

// CacheConfig tunes a Cache.
type CacheConfig struct {
	// MaxAge is how long a policy is believed: a change is in force everywhere within it. Default 3
	// s.
	MaxAge time.Duration
	// MaxAbsent is how long it is believed that there is no such policy. Default 1 s.
	MaxAbsent time.Duration
	// Patience is how long a call waits for a newer version of a policy that it knows, before it
	// goes on with that. Default 100 ms.
	Patience time.Duration
	// MaxEntries bounds the cache. Default 10 000.
	MaxEntries int
}

func (c CacheConfig) withDefaults() CacheConfig {
	if c.MaxAge == 0 {
		c.MaxAge = 3 * time.Second
	}
	if c.MaxAbsent == 0 {
		c.MaxAbsent = time.Second
	}
	if c.Patience == 0 {
		c.Patience = 100 * time.Millisecond
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = 10_000
	}
	return c
}

// Cache keeps an instance's policies for a few seconds. While the store is away or slow the last
// known ones go on working.
type Cache struct {
	store  Getter
	cfg    CacheConfig
	flight singleflight.Group

	mu      sync.Mutex
	entries map[string]entry
}

// Known is a policy as an instance knows it.
type Known struct {
	Stored
	// Stale says that the store is away or slow, and that this is the last version that was read.
	Stale bool
}

type entry struct {
	policy Known
	absent error // policy_not_found, or nil
	asked  time.Time
	until  time.Time // believed so long; the zero time when forgotten
}

// known says that the entry can stand in while the store is away.
func (e entry) known() bool { return !e.until.IsZero() && e.absent == nil }

// NewCache makes an empty Cache.
func NewCache(store Getter, cfg CacheConfig) *Cache {
	return &Cache{store: store, cfg: cfg.withDefaults(), entries: make(map[string]entry)}
}

// Get returns a policy that was in the store at most MaxAge ago or, while the store is away or
// slow, the last one that was known. Errors: policy_not_found; store_unavailable when the store is
// away and the policy was never seen; ctx's own.
func (c *Cache) Get(ctx context.Context, name string) (Known, error) {
	last := c.lookup(name)
	if time.Now().Before(last.until) {
		return last.policy, last.absent
	}
	var patience <-chan time.Time // for ever, when nothing is known
	if last.known() {
		timer := time.NewTimer(c.cfg.Patience)
		defer timer.Stop()
		patience = timer.C
	}
	fetched := c.flight.DoChan(name, func() (any, error) {
		return c.fetch(context.WithoutCancel(ctx), name) // its answer is for every caller that waits
	})
	select {
	case result := <-fetched:
		if fault.CodeOf(result.Err) == fault.StoreUnavailable && last.known() {
			return c.goOnWith(name, last), nil
		}
		p, _ := result.Val.(Known)
		return p, result.Err
	case <-patience:
		return c.goOnWith(name, last), nil
	case <-ctx.Done():
		return Known{}, fmt.Errorf("the caller did not wait for policy %q: %w", name, ctx.Err())
	}
}

func (c *Cache) fetch(ctx context.Context, name string) (Known, error) {
	asked := time.Now()
	p, err := c.store.Get(ctx, name)
	switch {
	case err == nil:
		c.remember(name, entry{policy: Known{Stored: p}, asked: asked, until: asked.Add(c.cfg.MaxAge)})
	case fault.CodeOf(err) == fault.PolicyNotFound:
		c.remember(name, entry{absent: err, asked: asked, until: asked.Add(c.cfg.MaxAbsent)})
	}
	return Known{Stored: p}, err
}

// goOnWith believes what was last known a while longer, so that not each call waits for a store
// that is away.
func (c *Cache) goOnWith(name string, last entry) Known {
	last.policy.Stale = true
	last.until = time.Now().Add(c.cfg.MaxAbsent)
	c.remember(name, last)
	return last.policy
}

// Forget makes the next Get ask the store, so that the instance that changed a policy sees its own
// change.
func (c *Cache) Forget(name string) {
	c.flight.Forget(name)
	c.remember(name, entry{asked: time.Now()})
}

func (c *Cache) lookup(name string) entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[name]
}

// remember keeps e unless a later question was answered meanwhile.
func (c *Cache) remember(name string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, ok := c.entries[name]
	if ok && before.asked.After(e.asked) {
		return
	}
	for other := range c.entries {
		if ok || len(c.entries) < c.cfg.MaxEntries {
			break
		}
		delete(c.entries, other)
	}
	c.entries[name] = e
}
