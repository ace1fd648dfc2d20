// Package redisserver runs redis-server processes on the loopback interface: a single server, a
// replica, or a cluster of masters.
package redisserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/localstack/subprocess"
)

// startLimit is the timeout of a start. It is long because the machine may be busy.
const startLimit = 20 * time.Second

// startTries is the maximum number of start attempts. Start tries a different port if another
// process took the port first.
const startTries = 5

// Options configures a server.
type Options struct {
	// Durable makes the server sync every write to disk before it replies, so that Kill loses no
	// acknowledged write.
	Durable bool
	// ReplicaOf makes the server a replica of the server at this address.
	ReplicaOf string
	// Cluster enables cluster mode.
	Cluster bool
	// Args lists additional arguments, for example "--maxmemory", "10mb".
	Args []string
	// TLS enables TLS with these files.
	TLS *TLSFiles
}

// TLSFiles holds the paths of the certificate, the key and the certificate authority of a server.
type TLSFiles struct{ Cert, Key, CA string }

// Server is a redis-server process. It keeps its port and its directory when it is restarted.
type Server struct {
	options Options
	port    int
	dir     string

	mu   sync.Mutex
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{}
}

// Start starts a server and waits until it answers.
func Start(ctx context.Context, options Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "sluice-redis-")
	if err != nil {
		return nil, fmt.Errorf("error making the directory of redis: %w", err)
	}
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &Server{options: options, port: port, dir: dir}
		err = s.Restart(ctx)
		switch {
		case err == nil:
			return s, nil
		// another process took the port or, for a cluster node, the port of the cluster bus
		case try < startTries && strings.Contains(err.Error(), "Address already in use"):
			continue
		}
		_ = os.RemoveAll(dir)
		return nil, err
	}
}

// freePort returns a free port below 50 000, because a cluster node also listens on the cluster bus
// port, which is 10 000 higher.
func freePort() (int, error) {
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
		if err != nil {
			return 0, fmt.Errorf("error finding a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a TCP listener
		_ = l.Close()
		if port < 50_000 {
			return port, nil
		}
	}
	return 0, errors.New("error finding a free port below 50000")
}

// Addr returns host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns the redis:// or rediss:// URL of the server.
func (s *Server) URL() string {
	if s.options.TLS != nil {
		return "rediss://" + s.Addr()
	}
	return "redis://" + s.Addr()
}

// Restart starts the server on its port and with its data. It does nothing if the server is
// running.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return nil
	}
	path, err := program()
	if err != nil {
		return err
	}
	s.log, s.done = &bytes.Buffer{}, make(chan struct{})
	s.cmd = exec.Command(path, s.args()...) //nolint:gosec,noctx // our own arguments; the process outlives ctx
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.log, s.log
	s.cmd.SysProcAttr = subprocess.Attr()
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("error starting redis-server: %w", err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(s.cmd, s.done)
	return s.await(ctx)
}

func (s *Server) args() []string {
	port := strconv.Itoa(s.port)
	args := []string{"--bind", "127.0.0.1", "--save", "", "--daemonize", "no", "--loglevel", "warning", "--dir", s.dir,
		"--repl-diskless-sync-delay", "0"}
	if t := s.options.TLS; t != nil {
		args = append(args, "--port", "0", "--tls-port", port, "--tls-cert-file", t.Cert, "--tls-key-file", t.Key,
			"--tls-ca-cert-file", t.CA, "--tls-auth-clients", "no")
	} else {
		args = append(args, "--port", port)
	}
	if s.options.Durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if s.options.Cluster {
		args = append(args, "--cluster-enabled", "yes", "--cluster-config-file", filepath.Join(s.dir, "nodes.conf"),
			"--cluster-node-timeout", "2000")
	}
	if s.options.ReplicaOf != "" {
		host, replicaPort, _ := net.SplitHostPort(s.options.ReplicaOf)
		args = append(args, "--replicaof", host, replicaPort)
	}
	return append(args, s.options.Args...)
}

// await polls until the server replies to PING with anything but LOADING. Any other error, such as
// NOAUTH or MASTERDOWN, counts as an answer.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if s.answers(ctx) {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("redis-server ended during its start: %s", bytes.TrimSpace(s.log.Bytes()))
		case <-ctx.Done():
			_ = s.cmd.Process.Kill()
			return fmt.Errorf("redis-server on port %d did not answer: %w", s.port, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// answers reports whether the server replies to an inline PING with anything but LOADING. It uses a
// plain connection, because the driver would log each refused connection.
func (s *Server) answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if s.options.TLS != nil { // an open port is enough; the caller makes the TLS handshake
		return true
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && !strings.HasPrefix(line, "-LOADING")
}

// running reports whether the process runs. The caller must hold s.mu.
func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process.
func (s *Server) Signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return os.ErrProcessDone
	}
	return s.cmd.Process.Signal(sig)
}

// Pause makes the server hang: connections stay open, and no call is answered.
func (s *Server) Pause() error { return s.Signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (s *Server) Resume() error { return s.Signal(syscall.SIGCONT) }

// Kill kills the process, like a crash, and waits for its end. [Server.Restart] starts it again.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Stop terminates the process and waits for its end. [Server.Restart] starts it again. The data is
// lost if the server is not Durable.
func (s *Server) Stop() error { return s.end(syscall.SIGTERM) }

func (s *Server) end(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGCONT) // a paused process does not receive SIGTERM
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("error ending redis-server: %w", err)
	}
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	return nil
}

// Close kills the process and removes its directory.
func (s *Server) Close() error {
	err := s.Kill()
	if removed := os.RemoveAll(s.dir); err == nil {
		err = removed
	}
	return err
}
