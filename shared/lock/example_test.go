package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/lock"
)

// The protected resource stores the highest fence that it has seen. It refuses a write with a lower
// fence, even if the writer does not know that its lease has ended.
func Example() {
	client, stop := redistest.ForExample() // a redis.UniversalClient of your own
	defer stop()
	locks := lock.FromClient(client)
	defer locks.Close()
	ctx := context.Background()

	var balance, highest int64
	write := func(fence, amount int64) error {
		if fence < highest {
			return errors.New("refused: a later holder has written")
		}
		highest, balance = fence, amount
		return nil
	}

	first, err := locks.Acquire(ctx, lock.Request{Name: "account-7", TTL: lock.MinTTL})
	if err != nil {
		panic(err)
	}
	fmt.Println("first holder:", write(first.Fence, 100))

	// The first holder is paused until after the end of its lease. A second holder acquires the
	// lock.
	second, err := locks.Acquire(ctx, lock.Request{Name: "account-7", Wait: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	fmt.Println("second holder:", write(second.Fence, 200))
	fmt.Println("first holder, late:", write(first.Fence, 300))
	fmt.Println("balance:", balance)

	// Output:
	// first holder: <nil>
	// second holder: <nil>
	// first holder, late: refused: a later holder has written
	// balance: 200
}

func ExampleRedis_Acquire_held() {
	client, stop := redistest.ForExample()
	defer stop()
	locks := lock.FromClient(client)
	defer locks.Close()
	ctx := context.Background()

	if _, err := locks.Acquire(ctx, lock.Request{Name: "report", Owner: "worker-1"}); err != nil {
		panic(err)
	}
	_, err := locks.Acquire(ctx, lock.Request{Name: "report", Owner: "worker-2"})
	if errors.Is(err, lock.ErrHeld) {
		fmt.Println("held by", lock.HolderOf(err))
	}

	// Output: held by worker-1
}

func ExampleRedis_Acquire_wait() {
	client, stop := redistest.ForExample()
	defer stop()
	locks := lock.FromClient(client)
	defer locks.Close()
	ctx := context.Background()

	first, err := locks.Acquire(ctx, lock.Request{Name: "report"})
	if err != nil {
		panic(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _, _ = locks.Release(ctx, first.Key, first.Token) })

	second, err := locks.Acquire(ctx, lock.Request{Name: "report", Wait: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	fmt.Println("woken by the release:", second.Waited < 5*time.Second)
	fmt.Println("higher fence:", second.Fence > first.Fence)

	// Output:
	// woken by the release: true
	// higher fence: true
}

func ExampleRedis_Acquire_semaphore() {
	client, stop := redistest.ForExample()
	defer stop()
	locks := lock.FromClient(client)
	defer locks.Close()
	ctx := context.Background()

	permit := lock.Request{Kind: lock.Semaphore, Name: "db-pool", Capacity: 2}
	for range 3 {
		lease, err := locks.Acquire(ctx, permit)
		if errors.Is(err, lock.ErrHeld) {
			fmt.Println("no permit left")
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Println("permits in use:", lease.InUse)
	}

	// Output:
	// permits in use: 1
	// permits in use: 2
	// no permit left
}

func ExampleRedis_Renew() {
	client, stop := redistest.ForExample()
	defer stop()
	locks := lock.FromClient(client)
	defer locks.Close()
	ctx := context.Background()

	lease, err := locks.Acquire(ctx, lock.Request{Name: "report"})
	if err != nil {
		panic(err)
	}
	renewed, err := locks.Renew(ctx, lease.Key, lease.Token, time.Minute)
	if err != nil {
		panic(err)
	}
	fmt.Println("same fence:", renewed.Fence == lease.Fence)

	if _, err = locks.Force(ctx, lease.Key); err != nil {
		panic(err)
	}
	if _, err = locks.Renew(ctx, lease.Key, lease.Token, time.Minute); errors.Is(err, lock.ErrNotHeld) {
		fmt.Println("not held:", lock.ReasonOf(err))
	}

	// Output:
	// same fence: true
	// not held: forced
}
