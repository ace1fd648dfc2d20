package policy

import (
	"context"
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
	// MaxAge is how long a policy is believed: a change is in force everywhere within it. Default 3 s.
	MaxAge time.Duration
	// MaxAbsent is how long it is believed that there is no such policy. Default 1 s.
	MaxAbsent time.Duration
	// MaxEntries bounds the cache. Default 10 000.
	MaxEntries int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c CacheConfig) withDefaults() CacheConfig {
	if c.MaxAge == 0 {
		c.MaxAge = 3 * time.Second
	}
	if c.MaxAbsent == 0 {
		c.MaxAbsent = time.Second
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = 10_000
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Cache keeps an instance's policies for a few seconds. While the store is away the last known ones go on working.
type Cache struct {
	store  Getter
	cfg    CacheConfig
	flight singleflight.Group

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	policy Stored
	absent error // policy_not_found, or nil
	until  time.Time
}

// NewCache makes an empty Cache.
func NewCache(store Getter, cfg CacheConfig) *Cache {
	return &Cache{store: store, cfg: cfg.withDefaults(), entries: make(map[string]entry)}
}

// Get returns a policy that was in the store at most MaxAge ago or, while the store is away, the last one that was known.
// Errors: policy_not_found; store_unavailable when the store is away and the policy was never seen.
func (c *Cache) Get(ctx context.Context, name string) (Stored, error) {
	known, ok := c.lookup(name)
	if ok && c.cfg.Now().Before(known.until) {
		return known.policy, known.absent
	}
	found, err, _ := c.flight.Do(name, func() (any, error) {
		asked := c.cfg.Now()
		p, err := c.store.Get(context.WithoutCancel(ctx), name) // its answer is for every caller that waits
		switch {
		case err == nil:
			c.remember(name, entry{policy: p, until: asked.Add(c.cfg.MaxAge)})
		case fault.CodeOf(err) == fault.PolicyNotFound:
			c.remember(name, entry{absent: err, until: asked.Add(c.cfg.MaxAbsent)})
		case ok && known.absent == nil: // the store is away: ask again in a while, not at each call
			c.remember(name, entry{policy: known.policy, until: asked.Add(c.cfg.MaxAbsent)})
			return known.policy, nil
		}
		return p, err
	})
	if err != nil {
		return Stored{}, err
	}
	p, _ := found.(Stored)
	return p, nil
}

// Forget makes the next Get ask the store, so that the instance that changed a policy sees its own change.
func (c *Cache) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
	c.flight.Forget(name)
}

func (c *Cache) lookup(name string) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[name]
	return e, ok
}

func (c *Cache) remember(name string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.entries {
		if len(c.entries) < c.cfg.MaxEntries {
			break
		}
		delete(c.entries, other)
	}
	c.entries[name] = e
}
