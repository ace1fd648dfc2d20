package fence_test

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/client/fence"
)

// A paused holder cannot write after the next holder has written.
func ExampleGuard_Check() {
	guard, ctx := fence.New(nil), context.Background()

	fmt.Println(guard.Check(ctx, "report.csv", 41)) // the first holder writes, and is paused
	fmt.Println(guard.Check(ctx, "report.csv", 42)) // the next holder writes
	fmt.Println(guard.Check(ctx, "report.csv", 41)) // the first holder continues
	// Output:
	// <nil>
	// <nil>
	// the fence is stale: "report.csv" was used with fence 41 after fence 42
}
