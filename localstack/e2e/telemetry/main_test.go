package telemetry_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/sluicehq/sluice/localstack/stack"
)

var (
	system *stack.Stack
	out    = &printed{}
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
	system, err = stack.Start(context.Background(), stack.Config{APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Log: out, Queues: []string{"orders"}, Processes: 1})
	if err != nil {
		return 1, err
	}
	defer func() { _ = system.Close() }()
	return m.Run(), nil
}
