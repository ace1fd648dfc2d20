package redisconn

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// recently is how long after an answer a connection counts as alive without being asked.
const recently = 100 * time.Millisecond

// dialer makes the driver's connections over TCP. Before each call the driver peeks at the socket,
// to find out that the server has closed it: a system call, which is a tenth of what a call costs
// this process. It is left out while the last answer is recent; whoever's connection is closed
// between two such calls learns it from the call, as he does over TLS, where the driver never
// peeks.
func dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: timeout})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		socket, ok := conn.(syscall.Conn)
		if !ok {
			return conn, nil
		}
		return &warm{Conn: conn, socket: socket}, nil
	}
}

// warm is a connection that knows when it was last answered.
type warm struct {
	net.Conn

	socket   syscall.Conn
	answered time.Time
}

// Read implements net.Conn.
func (w *warm) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.answered = time.Time{}
		return n, err //nolint:wrapcheck // the driver tells a network's errors by their types
	}
	w.answered = time.Now()
	return n, nil
}

// SyscallConn implements syscall.Conn, for the driver's peek.
func (w *warm) SyscallConn() (syscall.RawConn, error) {
	if time.Since(w.answered) < recently {
		return unasked{}, nil
	}
	raw, err := w.socket.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("error looking at a connection: %w", err)
	}
	return raw, nil
}

// unasked looks at nothing.
type unasked struct{}

func (unasked) Control(func(uintptr)) error    { return nil }
func (unasked) Read(func(uintptr) bool) error  { return nil }
func (unasked) Write(func(uintptr) bool) error { return nil }
