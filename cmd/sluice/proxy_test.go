package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is a TCP proxy between the program and the API. It makes the API unreachable in two ways:
// kill refuses connections, and hang drops all data.
type proxy struct {
	listener net.Listener
	backend  string
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	hung  bool
	dead  bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
	require.NoError(t, err)
	p := &proxy{listener: listener, backend: strings.TrimPrefix(system.APIURL, "http://")}
	p.running.Go(p.serve)
	t.Cleanup(func() {
		p.kill()
		p.running.Wait()
	})
	return p
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.backend) //nolint:noctx // loopback
		if err != nil || !p.keep(in, out) {
			_ = in.Close()
			continue
		}
		p.running.Go(func() { p.pass(out, in) })
		p.running.Go(func() { p.pass(in, out) })
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	return !p.dead
}

// pass copies until one end closes. While the proxy hangs, it drops the data.
func (p *proxy) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		hung := p.hung
		p.mu.Unlock()
		if !hung {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}

// kill closes every connection, and refuses new ones.
func (p *proxy) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	_ = p.listener.Close()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// hang drops all further data, and closes no connection.
func (p *proxy) hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung = true
}
