// These tests fetch from servers that refuse, lie, stall, and send without end.

package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

const file, folder = "ftp://a.example/pub/readme.txt", "ftp://a.example/pub/"

func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		url, cmd, says string
		status         int
		class          fetch.Class
	}{
		"too many, in the greeting":      {file, "", "421 too many users", 503, 0},
		"ready later":                    {file, "", "120 ready in 5 minutes", 503, 0},
		"too many, before the password":  {file, "USER", "421 too many users", 503, 0},
		"too many, after the password":   {file, "PASS", "530 Sorry, the maximum number of clients is reached", 503, 0},
		"no anonymous, before":           {file, "USER", "530 no anonymous here", 401, 0},
		"no anonymous, after":            {file, "PASS", "530 login incorrect", 401, 0},
		"an account is needed":           {file, "PASS", "532 account?", 401, 0},
		"in the middle of preparations":  {file, "TYPE", "421 shutting down", 503, 0},
		"in the middle of questions":     {file, "SIZE", "421 shutting down", 503, 0},
		"no such file":                   {"ftp://a.example/nothing", "X", "", 404, 0},
		"no such folder":                 {"ftp://a.example/nothing/", "X", "", 404, 0},
		"file name not allowed":          {file, "RETR", "553 not such names", 404, 0},
		"busy":                           {file, "RETR", "450 busy", 500, 0},
		"local error":                    {file, "RETR", "451 local error", 500, 0},
		"bad argument":                   {file, "RETR", "501 what?", 400, 0},
		"not implemented":                {file, "RETR", "502 not for you", 403, 0},
		"no data connection":             {file, "RETR", "425 cannot", 0, fetch.Connect},
		"aborted":                        {file, "RETR", "426 aborted", 0, fetch.Cut},
		"no listing":                     {folder, "MLSD", "550 no", 404, 0},
		"no listing now":                 {folder, "MLSD", "450 no", 500, 0},
		"no passive connection":          {file, "PASV", "425 none left", 0, fetch.Connect},
		"rubbish instead of a greeting":  {file, "", "SSH-2.0-OpenSSH_9", 0, fetch.Protocol},
		"HTTP instead of a greeting":     {file, "", "HTTP/1.1 400 Bad Request", 0, fetch.Protocol},
		"rubbish instead of a reply":     {file, "RETR", "hello", 0, fetch.Protocol},
		"success where none is possible": {file, "RETR", "226 sent", 0, fetch.Protocol},
		"closed at once":                 {file, "", "!", 0, fetch.Cut},
		"closed at login":                {file, "PASS", "!", 0, fetch.Cut},
		"closed instead of a transfer":   {file, "RETR", "!", 0, fetch.Cut},
	} {
		t.Run(name, func(t *testing.T) {
			s := site(t, func(s *server) {
				s.say = func(cmd, _ string) string {
					if tt.cmd == "PASV" && cmd == "EPSV" {
						return "502 no"
					}
					return refuse(tt.cmd, tt.says)(cmd, "")
				}
			})
			res, _, err := get(t, quick(s), fetch.Request{URL: tt.url})
			assert.Equal(t, tt.status, res.Status)
			assert.Nil(t, res.Body)
			if tt.class == 0 {
				require.NoError(t, err)
				assert.NotEmpty(t, res.Header.Get("Ftp-Reply"))
			} else {
				assert.Equal(t, tt.class, fetch.ClassOf(err), "%v", err)
			}
		})
	}
}

func TestWhatServersSayIsClean(t *testing.T) {
	s := site(t, func(s *server) { s.say = refuse("RETR", "451 \x1b]0;owned\x07\xff\u202e") })
	res, _, err := get(t, quick(s), fetch.Request{URL: file})
	require.NoError(t, err)
	assert.Equal(t, "451 ?]0;owned???", res.Header.Get("Ftp-Reply"))
}

// The server may name a port, but neither another host nor another service.
func TestDataConnectionGoesNowhereElse(t *testing.T) {
	var asked atomic.Int64
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	closed := other.Addr().(*net.TCPAddr).Port
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(addr); host != "127.0.0.1" {
			asked.Add(1)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	require.NoError(t, other.Close())
	for says, class := range map[string]fetch.Class{
		"229 ok (|||22|)": fetch.Protocol, "229 ok (|||0|)": fetch.Protocol, "229 ok (|||1023|)": fetch.Protocol,
		"229 ok (|||70000|)": fetch.Protocol, "229 ok (|||-1|)": fetch.Protocol,
		"227 ok (127,0,0,1,0,25)": fetch.Protocol, "227 ok (127,0,0,1,999,1)": fetch.Protocol, "227 ok (127,0,0,1,1)": fetch.Protocol,
		fmt.Sprintf("227 ok 127,0,0,1,%d,%d", closed/256, closed%256): fetch.Connect, "227 ok )(": fetch.Protocol, "227 ok (a,b,c,d,e,f)": fetch.Protocol,
		fmt.Sprintf("229 ok (|||%d|)", closed): fetch.Connect, fmt.Sprintf("227 ok (192,0,2,1,%d,%d)", closed/256, closed%256): fetch.Connect,
	} {
		s := site(t, func(s *server) {
			s.say = func(cmd, _ string) string {
				switch {
				case cmd == "PASV" && says[:3] == "227":
					return says
				case cmd == "EPSV" && says[:3] == "229":
					return says
				case cmd == "EPSV" || cmd == "PASV":
					return "502 no"
				}
				return ""
			}
		})
		o := quick(s)
		o.Dial = dial
		res, _, err := get(t, o, fetch.Request{URL: file})
		assert.Equal(t, class, fetch.ClassOf(err), "%s: %v", says, err)
		assert.Zero(t, res.Status, says)
	}
	assert.Zero(t, asked.Load())
}

func TestOwnNetworkIsNotContacted(t *testing.T) {
	s := site(t)
	_, port, err := net.SplitHostPort(s.addr())
	require.NoError(t, err)
	o := Options{Options: fetch.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}}
	for _, u := range []string{"ftp://a.example:" + port + "/", "ftp://127.0.0.1:" + port + "/"} {
		_, _, err = get(t, o, fetch.Request{URL: u})
		assert.Equal(t, fetch.Blocked, fetch.ClassOf(err))
	}
	assert.Empty(t, s.lines())
}

// endless writes until the client has left.
func endless(piece string) func(net.Conn, string, string) {
	return func(c net.Conn, _, _ string) {
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}
}

func TestWithoutEnd(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		s := site(t, func(s *server) { s.send = endless("0123456789") })
		res, body, err := get(t, quick(s), fetch.Request{URL: file, MaxBody: 1000})
		require.NoError(t, err)
		assert.True(t, res.Truncated)
		assert.Len(t, body, 1000)
		assert.LessOrEqual(t, res.Bytes, int64(1001))
	})
	t.Run("file of just the limit", func(t *testing.T) {
		s := site(t)
		res, body, err := get(t, quick(s), fetch.Request{URL: file, MaxBody: 13})
		require.NoError(t, err)
		assert.False(t, res.Truncated)
		assert.Len(t, body, 13)
	})
	t.Run("listing", func(t *testing.T) {
		s := site(t, func(s *server) { s.send = endless("type=file; x\r\n") })
		res, body, err := get(t, quick(s), fetch.Request{URL: folder, MaxBody: 14 * 100})
		require.NoError(t, err)
		assert.True(t, res.Truncated)
		assert.Positive(t, strings.Count(body, "<li>"))
		assert.Less(t, len(body), 14*100+100)
	})
	t.Run("line of a listing", func(t *testing.T) {
		s := site(t, func(s *server) {
			s.send = func(c net.Conn, cmd, name string) {
				_, _ = io.WriteString(c, "type=file; first\r\n")
				endless("0123456789")(c, cmd, name)
			}
		})
		res, body, err := get(t, quick(s), fetch.Request{URL: folder, MaxBody: 20_000})
		require.NoError(t, err)
		assert.True(t, res.Truncated)
		assert.Equal(t, 1, strings.Count(body, "<li>"))
	})
	for _, cmd := range []string{"", "FEAT", "RETR"} {
		for name, piece := range map[string]string{"lines": "220-hello\r\n", "line": "220-" + strings.Repeat("x", 100)} {
			t.Run("reply to "+cmd+" of "+name, func(t *testing.T) {
				s := site(t, func(s *server) { s.say = refuse(cmd, strings.Repeat(piece, 1<<20/len(piece))) })
				res, _, err := get(t, quick(s), fetch.Request{URL: file})
				assert.Equal(t, fetch.Protocol, fetch.ClassOf(err), "%v", err)
				assert.Zero(t, res.Status)
			})
		}
	}
}

// Whoever is silent, wherever, is left after the time limit of the phase.
func TestSilence(t *testing.T) {
	for _, cmd := range []string{"", "USER", "PASS", "FEAT", "EPSV", "SIZE", "RETR"} {
		t.Run("instead of a reply to "+cmd, func(t *testing.T) {
			s := site(t, func(s *server) { s.say = refuse(cmd, "-") })
			o := quick(s)
			o.HeaderTimeout = 50 * time.Millisecond
			_, _, err := get(t, o, fetch.Request{URL: file})
			assert.Equal(t, fetch.Timeout, fetch.ClassOf(err), "%v", err)
		})
	}
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for _, u := range []string{file, folder} {
		for name, change := range map[string]func(*fetch.Options){
			"nothing comes":            func(o *fetch.Options) { o.IdleTimeout = 50 * time.Millisecond },
			"it takes too long in all": func(o *fetch.Options) { o.Timeout = 50 * time.Millisecond },
			"little comes":             func(o *fetch.Options) { o.MinRate, o.RateWindow = 1<<20, 50*time.Millisecond },
		} {
			t.Run(name, func(t *testing.T) {
				s := serveSlowly(t, hang, name != "nothing comes")
				o := quick(s)
				change(&o.Options)
				_, _, err := get(t, o, fetch.Request{URL: u})
				assert.Equal(t, fetch.Timeout, fetch.ClassOf(err), "%v", err)
			})
		}
	}
	t.Run("after the transfer", func(t *testing.T) {
		s := site(t, func(s *server) { s.after = "-" })
		o := quick(s)
		o.HeaderTimeout = 50 * time.Millisecond
		_, _, err := get(t, o, fetch.Request{URL: file})
		assert.Equal(t, fetch.Timeout, fetch.ClassOf(err), "%v", err)
	})
}

// serveSlowly sends a byte now and then, or nothing.
func serveSlowly(t *testing.T, hang chan struct{}, drip bool) *server {
	return site(t, func(s *server) {
		s.send = func(c net.Conn, _, _ string) {
			every := time.NewTicker(5 * time.Millisecond)
			defer every.Stop()
			for {
				select {
				case <-hang:
					return
				case <-every.C:
				}
				if !drip {
					if _, err := c.Read(make([]byte, 1)); err != nil { // the client has left
						return
					}
				}
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
			}
		}
	})
}

func TestCutShort(t *testing.T) {
	for name, change := range map[string]func(*server){
		"fewer bytes than said": func(s *server) { s.send = func(c net.Conn, _, _ string) { _, _ = io.WriteString(c, "hello") } },
		"the server says so":    func(s *server) { s.after = "426 aborted" },
		"the disk says so":      func(s *server) { s.after = "451 read error" },
		"all connections end":   func(s *server) { s.after = "!" },
	} {
		t.Run(name, func(t *testing.T) {
			res, body, err := get(t, quick(site(t, change)), fetch.Request{URL: file})
			assert.Equal(t, fetch.Cut, fetch.ClassOf(err), "%v", err)
			assert.Equal(t, 200, res.Status)
			assert.Contains(t, body, "hello")
		})
	}
	s := site(t, func(s *server) { s.after = "426 aborted" })
	_, body, err := get(t, quick(s), fetch.Request{URL: folder})
	assert.Equal(t, fetch.Cut, fetch.ClassOf(err), "%v", err)
	assert.Contains(t, body, "readme.txt", "what came of a listing is there")
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := site(t, func(s *server) {
		s.send = func(c net.Conn, _, _ string) {
			cancel()
			_, _ = c.Read(make([]byte, 1)) // until the client has left
		}
	})
	f, err := New(quick(s))
	require.NoError(t, err)
	res, err := f.Fetch(ctx, fetch.Request{URL: file})
	require.NoError(t, res.Close())
	assert.Equal(t, fetch.Canceled, fetch.ClassOf(err))
	assert.True(t, errors.As(err, new(*fetch.Error)))
}
