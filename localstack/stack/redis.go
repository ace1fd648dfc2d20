package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// answerTimeout is the timeout of the check of the Redis at Config.RedisURL.
const answerTimeout = 3 * time.Second

// startRedis checks the Redis at Config.RedisURL. If no URL is set, it starts redis-server or, if
// redis-server is not installed, miniredis.
func (s *Stack) startRedis(ctx context.Context) error {
	if s.cfg.RedisURL != "" {
		s.RedisURL, s.RedisKind = s.cfg.RedisURL, "given"
		return answers(ctx, s.cfg.RedisURL)
	}
	server, err := redisserver.Start(ctx, redisserver.Options{Durable: true})
	if err == nil {
		s.redis, s.RedisURL, s.RedisKind = server, server.URL(), "redis-server"
		s.onClose(server.Close)
		return nil
	}
	if !errors.Is(err, redisserver.ErrMissing) {
		return err
	}
	mini, err := redisserver.StartMini()
	if err != nil {
		return err
	}
	s.RedisURL, s.RedisKind = mini.URL(), "miniredis"
	s.onClose(mini.Close)
	return nil
}

// startLockNodes starts independent servers for quorum locks and returns their URLs. If
// redis-server is not installed, it starts none.
func (s *Stack) startLockNodes(ctx context.Context) ([]string, error) {
	var urls []string
	for range s.cfg.LockNodes {
		server, err := redisserver.Start(ctx, redisserver.Options{})
		if errors.Is(err, redisserver.ErrMissing) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		s.onClose(server.Close)
		urls = append(urls, server.URL())
	}
	return urls, nil
}

// answers returns an error if the Redis at a comma-separated list of URLs does not answer.
func answers(ctx context.Context, list string) error {
	conn, err := redisconn.Open(redisconn.Config{
		URLs: redisconn.SplitList(list), CallTimeout: answerTimeout, DialTimeout: answerTimeout,
	})
	if err != nil {
		return fmt.Errorf("--redis: %w; give a redis:// or rediss:// URL", err)
	}
	defer func() { _ = conn.Close() }()

	err = conn.Do(ctx, func(ctx context.Context) error { return conn.Client().Ping(ctx).Err() })
	if unavailable, ok := errors.AsType[*fault.Error](err); ok {
		err = unavailable.Cause // print the cause; the detail is for callers of the API
	}
	if err != nil {
		return fmt.Errorf("the Redis at %s does not answer; start it, or leave --redis out: %w", redacted(list), err)
	}
	return nil
}

// redacted replaces the passwords in a comma-separated list of URLs.
func redacted(list string) string {
	urls := redisconn.SplitList(list)
	for i, text := range urls {
		if u, err := url.Parse(text); err == nil {
			urls[i] = u.Redacted()
		}
	}
	return strings.Join(urls, ", ")
}

// StopRedis kills Redis, like a crash. It returns an error if this stack did not start a
// redis-server.
func (s *Stack) StopRedis(context.Context) error {
	if s.redis == nil {
		return errors.New("this stack did not start a redis-server and cannot stop its redis")
	}
	return s.redis.Kill()
}

// StartRedis starts Redis again with its data. It returns an error if this stack did not start a
// redis-server.
func (s *Stack) StartRedis(ctx context.Context) error {
	if s.redis == nil {
		return errors.New("this stack did not start a redis-server and cannot start its redis")
	}
	return s.redis.Restart(ctx)
}
