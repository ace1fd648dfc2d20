package fence_test

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/client/fence"
)

// A holder that was paused cannot write after its successor has.
func ExampleGuard_Check() {
	guard, ctx := fence.New(nil), context.Background()

	fmt.Println(guard.Check(ctx, "report.csv", 41)) // the first holder writes, and is paused
	fmt.Println(guard.Check(ctx, "report.csv", 42)) // the next holder writes
	fmt.Println(guard.Check(ctx, "report.csv", 41)) // the first holder continues
	// Output:
	// <nil>
	// <nil>
	// the fence is stale: "report.csv" was used with 41, and has seen 42
}
