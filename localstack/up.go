package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/localstack/stack"
)

// up starts the system and keeps it running until ctx ends.
func up(ctx context.Context, o options, out, errOut io.Writer) error {
	log, closeLog, err := openLog(o.log, errOut)
	if err != nil {
		return err
	}
	defer closeLog()
	cfg := stack.Config{
		APIAddr:   o.api,
		AWSAddr:   o.aws,
		RedisURL:  o.redis,
		Queues:    splitNames(o.queues),
		Processes: o.processes,
		LockNodes: o.lockNodes,
		Tick:      o.tick,
		Log:       log,
		Consumers: o.consumers,
		Progress:  func(step string) { _, _ = fmt.Fprintln(errOut, step) },
	}
	cfg.Gateway.RequireIAM = o.iam

	started := time.Now()
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted during the start
		}
		return err
	}
	banner(out, s, time.Since(started))
	if o.ready != "" {
		if err := writeReady(o.ready, s); err != nil {
			return errors.Join(err, s.Close())
		}
	}

	<-ctx.Done()
	_, _ = fmt.Fprintln(out, "stopping…")
	return s.Close()
}

func splitNames(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// openLog returns the destination of the functions' output: a file, the terminal or [io.Discard].
func openLog(path string, terminal io.Writer) (io.Writer, func(), error) {
	switch path {
	case "":
		return io.Discard, func() {}, nil
	case "-":
		return terminal, func() {}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the user names the file
	if err != nil {
		return nil, nil, fmt.Errorf("error opening the log: %w", err)
	}
	return f, func() { _ = f.Close() }, nil
}

func banner(out io.Writer, s *stack.Stack, took time.Duration) {
	redis := s.RedisURL
	switch s.RedisKind {
	case "redis-server":
		redis += " (a redis-server of this stack; Ctrl-C deletes its data)"
	case "miniredis":
		redis += " (embedded miniredis: there is no redis-server on the PATH)"
	}
	_, _ = fmt.Fprintf(out, "Sluice is up, after %.1f s.\n\n", took.Seconds())
	_, _ = fmt.Fprintf(out, "  API     %s\n", s.APIURL)
	_, _ = fmt.Fprintf(out, "  AWS     %s (SQS, DynamoDB; any credentials)\n", s.AWSEndpoint)
	_, _ = fmt.Fprintf(out, "  Redis   %s\n", redis)
	for _, name := range slices.Sorted(maps.Keys(s.QueueURLs)) {
		_, _ = fmt.Fprintf(out, "  queue   %s → %s\n", name, s.QueueURLs[name])
	}
	_, _ = fmt.Fprintf(out, "\nTry, in another terminal:\n\n")
	const post = "  curl -s %s/v1/%s -H 'Content-Type: application/json' -d '%s'\n"
	_, _ = fmt.Fprintf(out, post, s.APIURL, "locks/report/acquire", `{"ttl_ms": 30000, "owner": "me"}`)
	_, _ = fmt.Fprintf(out, post, s.APIURL, "queues/orders/jobs", `{"payload": {"order": 42}, "delay_ms": 5000}`)
	_, _ = fmt.Fprintf(out, "  curl -s %s/v1/health\n\nCtrl-C stops it.\n", s.APIURL)
}

// writeReady writes the ready file atomically, so that no reader sees a partial file.
func writeReady(path string, s *stack.Stack) error {
	text, err := json.MarshalIndent(map[string]any{
		"api_url": s.APIURL, "aws_endpoint": s.AWSEndpoint, "redis_url": s.RedisURL, "queues": s.QueueURLs,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("error encoding the ready file: %w", err)
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("error writing the ready file: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("error writing the ready file: %w", err)
	}
	return nil
}
