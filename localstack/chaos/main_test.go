// Package chaos injects faults into the complete system and checks the delivery of every job. `make
// chaos` runs these tests with more jobs and faults.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/localstack/faultproxy"
	"github.com/sluicehq/sluice/localstack/stack"
)

// The tests share one system, so they do not run in parallel.
var (
	system *stack.Stack
	api    *client.Client
	proxy  *faultproxy.Proxy
	log    *os.File
)

const seed = 20261201

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if proxy, err = faultproxy.Start(seed); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	if log, err = os.CreateTemp("", "sluice-chaos-*.log"); err != nil {
		return 1, err
	}
	defer func() {
		_ = log.Close()
		if code == 0 {
			_ = os.Remove(log.Name())
		} else {
			fmt.Fprintln(os.Stderr, "the functions' log is", log.Name())
		}
	}()
	system, err = stack.Start(context.Background(), stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Queues: []string{"orders"}, Processes: 3, Tick: time.Second,
		Log: log,
		Env: []string{"AWS_ENDPOINT_URL=" + proxy.URL}, Target: proxy.Target,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	if api, err = client.New(client.Config{Endpoint: system.APIURL, Auth: client.AuthNone}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// scale returns the integer in the given environment variable. If the variable is not a positive
// integer, scale returns the default, normal.
func scale(name string, normal int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return normal
}
