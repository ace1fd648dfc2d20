package luascript

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Script is a script that a Redis client can run. Its methods do the same as the methods of
// [redis.Script] with the same names.
//
// A Script is composed at its first use: composing takes up to a millisecond per script, and a new
// Lambda instance needs only some of its scripts.
type Script struct {
	composed func() composed
}

type composed struct {
	*redis.Script

	source Source
}

// Load returns a script from files that are embedded in the program. The first use of the script
// panics if [Compose] returns an error. So a test must compose every script.
func Load(files fs.FS, file string) *Script {
	return &Script{sync.OnceValue(func() composed {
		source := MustCompose(files, file)
		return composed{redis.NewScript(source.Text), source}
	})}
}

// Run calls EvalSha, and then Eval if the server does not have the script yet.
func (s *Script) Run(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd {
	return s.composed().Run(ctx, client, keys, args...)
}

// Eval runs the script by its source.
func (s *Script) Eval(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd {
	return s.composed().Eval(ctx, client, keys, args...)
}

// EvalSha runs the script by its hash.
func (s *Script) EvalSha(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd {
	return s.composed().EvalSha(ctx, client, keys, args...)
}

// failedLine matches the line number in the error reply of a script. Every version of Redis and
// Valkey uses this format.
var failedLine = regexp.MustCompile(`user_script:(\d+)`)

// Locate wraps the error reply of a script with the file and the line that failed. It returns every
// other error unchanged.
func (s *Script) Locate(err error) error {
	if err == nil {
		return nil
	}
	found := failedLine.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	line, _ := strconv.Atoi(found[1])
	return fmt.Errorf("%s: %w", s.composed().source.Position(line), err)
}
