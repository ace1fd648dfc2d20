package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/localstack/stack"
)

// The functions connect to Redis as the ACL user of the Terraform module, so that these tests
// detect commands that the user is not permitted to run.
const user, password = "sluice-functions", "p4ssw0rd"

var (
	system *stack.Stack
	server *redisserver.Server
	out    = &printed{}
	used   sync.Once // guards use(), because a job ID can be enqueued only once
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	rules, err := accessString()
	if err != nil {
		return 1, err
	}
	args := append([]string{"--requirepass", "root", "--maxmemory", "500mb", "--user", user, ">" + password}, rules...)
	server, err = redisserver.Start(context.Background(), redisserver.Options{Durable: true, Args: args})
	if err != nil {
		return 1, err
	}
	defer func() { _ = server.Close() }()
	system, err = stack.Start(context.Background(), stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Log: out, Queues: []string{"orders"}, Processes: 1,
		RedisURL: "redis://" + user + ":" + password + "@" + server.Addr(),
	})
	if err != nil {
		return 1, fmt.Errorf("%w\n%s", err, out.text.String())
	}
	defer func() { _ = system.Close() }()
	return m.Run(), nil
}

// accessString returns the ACL rules of the module's ElastiCache user.
func accessString() ([]string, error) {
	text, err := os.ReadFile("../../../terraform/module/cache.tf")
	if err != nil {
		return nil, err
	}
	found := regexp.MustCompile(`access_string = "(.+)"`).FindSubmatch(text)
	if found == nil {
		return nil, errors.New("terraform/module/cache.tf has no access_string")
	}
	return strings.Fields(string(found[1])), nil
}
