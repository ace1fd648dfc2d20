package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config is the configuration of a [Conn]: the address, the authentication and the timeouts.
type Config struct {
	// URLs lists redis:// or rediss:// URLs: one server, or one or more nodes of a cluster.
	URLs []string
	// Cluster selects the Redis Cluster protocol. Several URLs imply it.
	Cluster bool
	// CallTimeout bounds one call, including the time to connect. Default 250 ms.
	CallTimeout time.Duration
	// DialTimeout bounds the time to connect. Default 200 ms.
	DialTimeout time.Duration
	// PoolSize bounds the connections to each node. Default 10.
	PoolSize int
	// Credentials returns the user and the password for a new connection. It is called for each
	// connection, so that a short-lived IAM token is always fresh. If it fails, the call fails with
	// fault.StoreUnavailable. Default: the user and the password in the URL.
	Credentials func(context.Context) (user, password string, err error)
	// MaxConnAge is the maximum age of a connection. Each connection is replaced at a random age
	// between 90 % and 100 % of it, so that connections are not all replaced at the same time. 0
	// means no maximum.
	MaxConnAge time.Duration
	// TLS replaces the TLS configuration that rediss:// implies, for a private certificate
	// authority.
	TLS *tls.Config
	// Breaker tunes the circuit breaker.
	Breaker BreakerConfig
}

func (c Config) withDefaults() Config {
	if c.CallTimeout == 0 {
		c.CallTimeout = 250 * time.Millisecond
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 200 * time.Millisecond
	}
	if c.PoolSize == 0 {
		c.PoolSize = 10
	}
	c.Cluster = c.Cluster || len(c.URLs) > 1
	return c
}

// SplitList splits a comma-separated list of URLs and drops empty elements.
func SplitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// invalidURL returns the error for a URL that cannot be parsed. It omits the text of a [url.Error],
// which may contain the password.
func invalidURL(err error) error {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return errors.New("redis URL is not valid")
	}
	return fmt.Errorf("redis URL is not valid: %w", err)
}

// options returns the configuration of the driver. MaxRetries is -1, which disables retries,
// because the caller decides which calls are safe to send twice. A cluster client still sends a
// call again after a redirection or a closed connection.
func (c Config) options() (*redis.UniversalOptions, error) {
	var o redis.UniversalOptions
	for _, u := range c.URLs {
		parsed, err := redis.ParseURL(u)
		if err != nil {
			return nil, invalidURL(err)
		}
		o.Addrs = append(o.Addrs, parsed.Addr)
		o.Username, o.Password, o.DB, o.TLSConfig = parsed.Username, parsed.Password, parsed.DB, parsed.TLSConfig
	}
	if c.TLS != nil {
		implied := o.TLSConfig
		o.TLSConfig = c.TLS.Clone()
		// The driver verifies the certificate of every cluster node against this name. Without a
		// name it connects to no node.
		if o.TLSConfig.ServerName == "" && implied != nil {
			o.TLSConfig.ServerName = implied.ServerName
		}
	}
	if o.TLSConfig == nil {
		o.Dialer = dialer(c.DialTimeout)
	}
	o.CredentialsProviderContext = c.Credentials
	o.ConnMaxLifetime, o.ConnMaxLifetimeJitter = c.MaxConnAge-c.MaxConnAge/20, c.MaxConnAge/20
	o.IsClusterMode = c.Cluster
	o.MaxRetries = -1
	o.DialTimeout = c.DialTimeout
	o.DialerRetries = 1
	o.ReadTimeout, o.WriteTimeout = c.CallTimeout, c.CallTimeout
	o.PoolTimeout = c.CallTimeout
	o.PoolSize = c.PoolSize
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	// RESP2 without maintenance notifications is plain request and reply, which Redis 6.2, Valkey
	// and miniredis all support.
	o.Protocol = 2
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o, nil
}
