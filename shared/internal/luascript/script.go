package luascript

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Script is a composed script that a Redis client can run.
type Script struct {
	*redis.Script

	source Source
}

// MustLoad composes a script from files that are embedded in the program. It panics if [Compose]
// returns an error.
func MustLoad(files fs.FS, file string) *Script {
	source := MustCompose(files, file)
	return &Script{Script: redis.NewScript(source.Text), source: source}
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
	return fmt.Errorf("%s: %w", s.source.Position(line), err)
}
