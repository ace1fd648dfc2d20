package redisserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// programVariable is the environment variable that selects the server program, by a name on the
// PATH or by a path. CI sets it to test several versions of Redis and Valkey.
const programVariable = "REDIS_SERVER"

// ErrMissing reports that no server program is installed, and how to install one.
var ErrMissing = errors.New("redis-server is not on the PATH; type: " +
	"sudo apt-get install -y redis-server (Debian, Ubuntu) or brew install redis (macOS)")

// program returns the path of the program that REDIS_SERVER selects. If the variable is not set,
// program searches the PATH for redis-server, then for valkey-server. Errors: [ErrMissing].
func program() (string, error) {
	selected := os.Getenv(programVariable) //nolint:forbidigo // applies to every test and to the local stack
	path, err := exec.LookPath(cmp.Or(selected, "redis-server"))
	switch {
	case err == nil:
		return path, nil
	case selected != "":
		return "", fmt.Errorf("error finding the program that %s selects: %w", programVariable, err)
	}
	if path, err = exec.LookPath("valkey-server"); err != nil {
		return "", ErrMissing
	}
	return path, nil
}
