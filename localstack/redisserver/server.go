// Package redisserver runs real redis-server processes on loopback: alone, as a replica, or as a
// cluster of masters.
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

// startLimit bounds the start of one server. It is long because a machine may be busy.
const startLimit = 20 * time.Second

// startTries bounds how often a server is started on another port because somebody else took the
// one that was free.
const startTries = 5

// Options describe one server.
type Options struct {
	// Durable appends every write to a file and syncs it before the answer, so that Kill loses
	// nothing that was acknowledged.
	Durable bool
	// ReplicaOf makes it a replica of the server at this address.
	ReplicaOf string
	// Cluster turns cluster mode on.
	Cluster bool
	// Args are further arguments, such as "--maxmemory", "10mb".
	Args []string
	// TLS, when set, makes the port speak TLS with these files.
	TLS *TLSFiles
}

// TLSFiles are the paths of a server's certificate, key and authority.
type TLSFiles struct{ Cert, Key, CA string }

// Server is one redis-server process with a port and a directory of its own, which a restart keeps.
type Server struct {
	options Options
	port    int
	dir     string

	mu   sync.Mutex
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{}
}

// Start runs a server and waits until it answers.
func Start(ctx context.Context, options Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "sluice-redis-")
	if err != nil {
		return nil, fmt.Errorf("error making redis' directory: %w", err)
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
		// somebody took the port, or a cluster node's second one
		case try < startTries && strings.Contains(err.Error(), "Address already in use"):
			continue
		}
		_ = os.RemoveAll(dir)
		return nil, err
	}
}

// freePort is below 50 000, since a cluster node also listens on its port plus 10 000.
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

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is Addr as a redis:// or rediss:// URL.
func (s *Server) URL() string {
	if s.options.TLS != nil {
		return "rediss://" + s.Addr()
	}
	return "redis://" + s.Addr()
}

// Restart starts a server that is not running, on the port and with the data that it had.
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
	s.cmd = exec.Command(path, s.args()...) //nolint:gosec,noctx // our own arguments; it outlives ctx, and Stop ends it
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

// await polls until the server answers at all; a refusal such as LOADING, NOAUTH or MASTERDOWN is
// no reason to give up.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if s.answers(ctx) {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("redis-server ended while starting: %s", bytes.TrimSpace(s.log.Bytes()))
		case <-ctx.Done():
			_ = s.cmd.Process.Kill()
			return fmt.Errorf("redis-server on port %d did not answer: %w", s.port, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// answers sends an inline PING over a bare connection: a driver would log each refusal while the
// server starts.
func (s *Server) answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if s.options.TLS != nil { // its certificate is the caller's business: an open port is enough
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

// running needs the lock.
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

// Signal sends a signal to the process: SIGSTOP hangs it, SIGCONT lets it go on.
func (s *Server) Signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return os.ErrProcessDone
	}
	return s.cmd.Process.Signal(sig)
}

// Pause hangs the server: connections stay open and nothing is answered.
func (s *Server) Pause() error { return s.Signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() error { return s.Signal(syscall.SIGCONT) }

// Kill ends the process as a crash would, and waits until it is gone. Restart brings it back.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Stop lets the process end in order, and waits. Restart brings it back; without Durable its data
// is gone.
func (s *Server) Stop() error { return s.end(syscall.SIGTERM) }

func (s *Server) end(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGCONT) // a stopped process would not see SIGTERM
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
