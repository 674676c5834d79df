// This file is a small FTP server on loopback, which can be made to misbehave.

package ftp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server serves files; those whose name ends in a slash are folders. It serves each client
// according to RFC 959, except where say and send replace that.
type server struct {
	files map[string]string
	times map[string]string // for MDTM
	feat  []string
	list  func(dir string) string // what LIST sends
	// say, if set, may answer a command instead; "" is left to the server, "-" is
	// silence, "!" closes the connection.
	say func(cmd, arg string) string
	// send, if set, writes to the data connection instead.
	send  func(w net.Conn, cmd, name string)
	after string // said after a transfer; "226 sent" if empty

	listener net.Listener
	clients  sync.WaitGroup

	mu    sync.Mutex
	log   []string            // guarded by mu
	conns map[net.Conn]string // guarded by mu; open
	most  int                 // guarded by mu; control connections open at once
}

// serve starts s, which ends with the test.
func serve(t testing.TB, s *server) *server {
	t.Helper()
	var err error
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.conns = map[net.Conn]string{}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.clients.Go(func() { s.client(c) })
		}
	})
	t.Cleanup(func() {
		_ = s.listener.Close()
		accepting.Wait()
		s.mu.Lock()
		for c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.clients.Wait()
	})
	return s
}

func (s *server) addr() string { return s.listener.Addr().String() }

// lines are all commands so far.
func (s *server) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// commands returns the commands of all clients so far, without those that only prepare a transfer.
func (s *server) commands() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.log {
		if cmd, _, _ := strings.Cut(l, " "); !slices.Contains([]string{"USER", "PASS", "FEAT", "TYPE", "OPTS", "EPSV", "PASV", "QUIT"}, cmd) {
			out = append(out, l)
		}
	}
	return out
}

func (s *server) track(c net.Conn, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = kind
	n := 0
	for _, k := range s.conns {
		if k == kind && kind == "control" {
			n++
		}
	}
	s.most = max(s.most, n)
}

func (s *server) leave(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// session is one client.
type testSession struct {
	*server
	c    net.Conn
	cwd  string
	data net.Listener
}

func (s *server) client(c net.Conn) {
	s.track(c, "control")
	defer s.leave(c)
	x := &testSession{server: s, c: c, cwd: "/"}
	defer func() {
		if x.data != nil {
			_ = x.data.Close()
		}
	}()
	r := bufio.NewReader(c)
	greeting := "220 ready"
	if s.say != nil {
		if said := s.say("", ""); said != "" {
			greeting = said
		}
	}
	if !x.reply(greeting) {
		return
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		cmd, arg, _ := strings.Cut(line, " ")
		s.mu.Lock()
		s.log = append(s.log, line)
		s.mu.Unlock()
		if s.say != nil {
			if said := s.say(cmd, arg); said != "" {
				if !x.reply(said) {
					return
				}
				continue
			}
		}
		if !x.reply(x.obey(cmd, arg)) {
			return
		}
	}
}

// reply sends a reply; false ends the session.
func (x *testSession) reply(text string) bool {
	switch text {
	case "":
		return true
	case "-":
		return true
	case "!":
		return false
	}
	_, err := io.WriteString(x.c, text+"\r\n")
	return err == nil && !strings.HasPrefix(text, "421") && !strings.HasPrefix(text, "221")
}

func (x *testSession) at(arg string) string {
	if !strings.HasPrefix(arg, "/") {
		arg = path.Join(x.cwd, arg)
	}
	return path.Clean(arg)
}

func (x *testSession) obey(cmd, arg string) string {
	name := x.at(arg)
	content, isFile := x.files[name]
	_, isDir := x.files[strings.TrimSuffix(name, "/")+"/"]
	switch cmd {
	case "USER":
		return "331 password please"
	case "PASS":
		return "230 welcome"
	case "FEAT":
		if x.feat == nil {
			return "500 what?"
		}
		return "211-Features:\r\n " + strings.Join(x.feat, "\r\n ") + "\r\n211 End"
	case "TYPE", "OPTS":
		return "200 ok"
	case "QUIT":
		return "221 bye"
	case "CWD":
		if !isDir {
			return "550 no such folder"
		}
		x.cwd = name
		return "250 ok"
	case "SIZE":
		if !isFile {
			return "550 no such file"
		}
		return fmt.Sprintf("213 %d", len(content))
	case "MDTM":
		if x.times[name] == "" {
			return "550 no such file"
		}
		return "213 " + x.times[name]
	case "EPSV", "PASV":
		return x.passive(cmd)
	case "RETR":
		if !isFile {
			return "550 no such file"
		}
		return x.transfer(cmd, name, content)
	case "LIST", "MLSD":
		return x.transfer(cmd, x.cwd, x.list(x.cwd))
	}
	return "502 not here"
}

func (x *testSession) passive(cmd string) string {
	if x.data != nil {
		_ = x.data.Close()
	}
	var err error
	if x.data, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return "425 " + err.Error()
	}
	port := netip.MustParseAddrPort(x.data.Addr().String()).Port()
	if cmd == "EPSV" {
		return fmt.Sprintf("229 Entering Extended Passive Mode (|||%d|)", port)
	}
	return fmt.Sprintf("227 Entering Passive Mode (192,0,2,1,%d,%d)", port/256, port%256) // a forbidden address
}

// transfer waits for the client and sends.
func (x *testSession) transfer(cmd, name, content string) string {
	c, err := x.data.Accept()
	if err != nil {
		return "425 " + err.Error()
	}
	x.track(c, "data")
	defer x.leave(c)
	x.reply("150 here it comes")
	if x.send != nil {
		x.send(c, cmd, name)
	} else if _, err := io.WriteString(c, content); err != nil {
		return "426 you left"
	}
	if x.after != "" {
		return x.after
	}
	return "226 sent"
}

// quick are limits for tests that wait for none, or for the one they set.
func quick(s *server) Options {
	return Options{Options: fetch.Options{Resolve: map[string]string{"*": s.addr()}}}
}

// get fetches a URL and closes the Result with the test.
func get(t testing.TB, o Options, r fetch.Request) (*fetch.Result, string, error) {
	t.Helper()
	f, err := New(o)
	require.NoError(t, err)
	res, err := f.Fetch(t.Context(), r)
	require.NotNil(t, res)
	t.Cleanup(func() { assert.NoError(t, res.Close()) })
	assert.False(t, res.Ended.Before(res.Started))
	body, readErr := res.Body.Bytes()
	require.NoError(t, readErr)
	return res, string(body), err
}
