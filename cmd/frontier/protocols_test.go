// These tests crawl what is not on the web.

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listenTo serves clients one by one until the test ends.
func listenTo(t *testing.T, serve func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// asked collects what servers were asked for.
type asked struct {
	mu   sync.Mutex
	what []string // guarded by mu
}

func (a *asked) add(s string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.what = append(a.what, s)
}

// gopherHole has a robots.txt, a menu, a text, and what is forbidden.
func gopherHole(t *testing.T, a *asked) string {
	items := map[string]string{
		"/robots.txt": "User-agent: *\r\nDisallow: /private\r\n",
		"":            "0Text\t/text\tg.example\t70\r\n0Private\t/private/x\tg.example\t70\r\nhFiles\tURL:ftp://f.example/pub\tx\t70\r\n.\r\n",
		"/text":       "hello\r\n.\r\n",
	}
	return listenTo(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		selector := strings.TrimRight(line, "\r\n")
		a.add("gopher " + selector)
		_, _ = io.WriteString(c, items[selector])
	})
}

// fileServer has a robots.txt, and a folder with a file and what is forbidden.
func fileServer(t *testing.T, a *asked) string {
	content := map[string]string{"robots.txt": "User-agent: *\r\nDisallow: /pub/secret\r\n", "pub/file.txt": "hello", "MLSD": "type=file; file.txt\r\ntype=dir; secret\r\n"}
	data, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = data.Close() })
	return listenTo(t, func(c net.Conn) {
		fmt.Fprint(c, "220 ready\r\n")
		for lines := bufio.NewScanner(c); lines.Scan(); {
			cmd, arg, _ := strings.Cut(lines.Text(), " ")
			switch cmd {
			case "USER":
				fmt.Fprint(c, "230 welcome\r\n")
			case "FEAT":
				fmt.Fprint(c, "211-Features\r\n MLST\r\n211 End\r\n")
			case "TYPE":
				fmt.Fprint(c, "200 ok\r\n")
			case "CWD":
				if arg != "pub" {
					fmt.Fprint(c, "550 no\r\n")
					continue
				}
				fmt.Fprint(c, "250 ok\r\n")
			case "EPSV":
				fmt.Fprintf(c, "229 ok (|||%d|)\r\n", data.Addr().(*net.TCPAddr).Port)
			case "RETR", "MLSD":
				a.add(lines.Text())
				d, err := data.Accept()
				if err != nil {
					return
				}
				text, ok := content[max(arg, strings.TrimSuffix(cmd, "RETR"))]
				if ok {
					fmt.Fprint(c, "150 here it comes\r\n")
					_, _ = io.WriteString(d, text)
					fmt.Fprint(c, "226 sent\r\n")
				} else {
					fmt.Fprint(c, "550 no such file\r\n")
				}
				_ = d.Close()
			case "QUIT":
				return
			default:
				fmt.Fprint(c, "502 no\r\n")
			}
		}
	})
}

func TestProtocols(t *testing.T) {
	var a asked
	status, out, log := command(t, t.Context(), "-scope-hosts", "*", "-resolve", "g.example="+gopherHole(t, &a), "-resolve", "f.example="+fileServer(t, &a),
		"-protocols", "gopher,ftp", "GOPHER://g.example:70/1")
	require.Equal(t, exitOK, status, log)
	assert.Contains(t, out, "4 pages, 1 redirects, 0 gone, 0 refused, 0 failed fetches, 0 URLs given up, 2 denied by robots.txt")
	assert.ElementsMatch(t, []string{"gopher /robots.txt", "gopher ", "gopher /text", "RETR robots.txt", "RETR pub", "MLSD", "RETR pub/file.txt"}, a.what)
}

func TestProtocolsAreAskedFor(t *testing.T) {
	for want, args := range map[string][]string{
		"want http or https, or a scheme of -protocols": {"ftp://f.example/"},
		`"gopher://g.example/": want http or https`:     {"-protocols", "ftp", "gopher://g.example/"},
		`-protocols is "wais"`:                          {"-protocols", "wais", "http://a.example/"},
		"ftp cannot go through one":                     {"-protocols", "ftp", "-proxy", "http://p.example:1", "ftp://f.example/"},
		"gopher cannot go through one":                  {"-protocols", "gopher", "-proxy", "socks5://p.example:1", "http://f.example/"},
	} {
		status, _, log := command(t, t.Context(), args...)
		assert.Equal(t, exitUsage, status, "%q", args)
		assert.Contains(t, log, want)
	}
}
