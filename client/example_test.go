package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/internal/fakeapi"
)

// connect returns a client of an in-memory API. A real program sets only Endpoint, to the URL of
// its deployment.
func connect() *client.Client {
	c, err := client.New(client.Config{
		Endpoint:   "http://localhost:4000",
		HTTPClient: &http.Client{Transport: fakeapi.New()},
	})
	if err != nil {
		panic(err)
	}
	return c
}

func Example() {
	c, ctx := connect(), context.Background()

	lock, err := c.Lock(ctx, "nightly-report", client.LockOptions{TTL: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := lock.Unlock(ctx); err != nil {
			fmt.Println("the lock was lost during the work:", err)
		}
	}()

	// The context ends if the lock is lost. With the fence, the resource can refuse an earlier
	// holder.
	fmt.Println("working with fence", lock.Fence(), lock.Context().Err())
	// Output:
	// working with fence 1 <nil>
}

// TryLock does not wait for a lock that is held.
func ExampleClient_TryLock() {
	c, ctx := connect(), context.Background()

	lock, err := c.TryLock(ctx, "deploy", client.LockOptions{Owner: "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.TryLock(ctx, "deploy", client.LockOptions{Owner: "bob"})
	if e, ok := errors.AsType[*client.Error](err); ok && errors.Is(err, client.ErrLockHeld) {
		fmt.Println("held by", e.Holder)
	}
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// held by ann
	// <nil>
}

// A semaphore grants as many permits as its capacity.
func ExampleClient_Semaphore() {
	c, ctx := connect(), context.Background()
	connections := c.Semaphore("db-connections", 2)

	for range 3 {
		permit, err := connections.TryAcquire(ctx, client.LockOptions{})
		if errors.Is(err, client.ErrLockHeld) {
			fmt.Println("every permit is in use")
			continue
		}
		fmt.Println("permit", permit.InUse(), err)
		defer func() { _ = permit.Unlock(ctx) }()
	}
	// Output:
	// permit 1 <nil>
	// permit 2 <nil>
	// every permit is in use
}

// A push with an ID is idempotent.
func ExampleQueue_Push() {
	c, ctx := connect(), context.Background()
	orders := c.Queue("orders")

	reminder := client.Job{
		ID:          "order-42-reminder",
		Payload:     map[string]int{"order": 42},
		Delay:       15 * time.Minute,
		MaxAttempts: 5,
	}
	for range 2 {
		receipt, err := orders.Push(ctx, reminder)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(receipt.ID, receipt.State, "duplicate:", receipt.Duplicate)
	}
	// Output:
	// order-42-reminder scheduled duplicate: false
	// order-42-reminder scheduled duplicate: true
}

// A rejected job is scheduled again until its last attempt.
func ExampleQueue_Nack() {
	c, ctx := connect(), context.Background()
	orders := c.Queue("orders")
	if _, err := orders.Push(ctx, client.Job{ID: "order-42", MaxAttempts: 3}); err != nil {
		fmt.Println(err)
		return
	}

	// Package consumer calls Nack when a handler returns an error.
	status, err := orders.Nack(ctx, "order-42", 1, client.NackOptions{Error: "out of stock", Delay: new(time.Hour)})
	fmt.Println(status.State, err)
	// Output:
	// scheduled <nil>
}

// The policy of this example allows two units per key.
func ExampleClient_Check() {
	c, ctx := connect(), context.Background()

	for range 3 {
		d, err := c.Check(ctx, client.Check{Policy: "login", Key: "ann@example.com"})
		switch {
		case err != nil:
			fmt.Println("no decision:", err)
		case d.Allowed:
			fmt.Println("allowed,", d.Remaining, "left")
		case d.RetryAfter == nil:
			fmt.Println("never allowed")
		default:
			fmt.Println("denied by", d.Violated, "for", *d.RetryAfter)
		}
	}
	// Output:
	// allowed, 1 left
	// allowed, 0 left
	// denied by per-minute for 30s
}

// The policy of this example allows two requests per key.
func ExampleClient_Middleware() {
	limit, err := connect().Middleware(client.LimitConfig{
		Policy: "api",
		Key:    func(r *http.Request) string { return r.Header.Get("X-Api-Key") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))

	for range 3 {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
		r.Header.Set("X-Api-Key", "tenant-7")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}
