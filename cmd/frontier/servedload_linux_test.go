// This file overloads a server, and measures its memory and what an honest client gets meanwhile.

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var long = flag.Bool("frontier.long", false, "run the measurements in full size")

// loadedServer is a process that serves.
type loadedServer struct {
	t    *testing.T
	host string
	pid  int
}

func startLoaded(t *testing.T, args ...string) *loadedServer {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	c := exec.Command(os.Args[0], append([]string{"serve", "-http", "127.0.0.1:0", "-grpc", "off"}, args...)...)
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Stdout, c.Stderr = log, log
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		assert.NoError(t, c.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, c.Wait())
		assert.NoError(t, log.Close())
	})
	address := regexp.MustCompile(`msg=serving http=(\S+)`)
	var found [][]byte
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(log.Name())
		found = address.FindSubmatch(b)
		return err == nil && found != nil
	}, 2*time.Minute, 10*time.Millisecond)
	return &loadedServer{t, string(found[1]), c.Process.Pid}
}

// add adds n URLs of hosts.
func (s *loadedServer) add(n, hosts int) {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "http://host%d.example/articles/%d/some-longer-path.html\n", i%hosts, i)
	}
	res, err := http.Post("http://"+s.host+"/v1/urls", "text/plain", &b)
	require.NoError(s.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	require.Contains(s.t, string(text), fmt.Sprintf(`"new":%d,`, n))
}

// resident is what memory the process has, in bytes.
func (s *loadedServer) resident() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	require.NoError(s.t, err)
	_, text, _ := strings.Cut(string(b), "VmRSS:")
	n, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
	require.NoError(s.t, err)
	return n << 10
}

// heap is what the runtime has ever taken for its heap, in bytes.
func (s *loadedServer) heap() int64 {
	res, err := http.Get("http://" + s.host + "/metrics")
	require.NoError(s.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	found := regexp.MustCompile(`(?m)^go_memstats_heap_sys_bytes (\S+)`).FindSubmatch(text)
	require.NotNil(s.t, found, "%s", text)
	n, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(s.t, err)
	return int64(n)
}

// page takes a lease and ends it, with links.
func (s *loadedServer) page(c *http.Client, links []byte) error {
	post := func(path string, body []byte) ([]byte, error) {
		res, err := c.Post("http://"+s.host+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %d %s", path, res.StatusCode, b)
		}
		return b, err
	}
	b, err := post("/v1/leases", []byte(`{"wait_s":60}`))
	if err != nil {
		return err
	}
	lease := regexp.MustCompile(`"lease":"([^"]+)"`).FindSubmatch(b)
	if lease == nil {
		return fmt.Errorf("no lease: %s", b)
	}
	_, err = post("/v1/leases/"+string(lease[1])+"/done", append(append([]byte(`{"result":"visited","duration_s":0.1,"add":[`), links...), `]}`...))
	return err
}

// unread sends a request on each of n connections, and reads the beginning of the responses. closeAll
// counts them by status.
func (s *loadedServer) unread(n int, request string) (closeAll func() map[string]int) {
	var conns []net.Conn
	var mu sync.Mutex
	answers := map[string]int{}
	for range n {
		conn, err := net.Dial("tcp", s.host)
		require.NoError(s.t, err)
		conns = append(conns, conn)
		if request == "" {
			continue
		}
		_, err = io.WriteString(conn, request)
		require.NoError(s.t, err)
		go func() {
			begin := make([]byte, len("HTTP/1.1 200"))
			if _, err := io.ReadFull(conn, begin); err == nil {
				mu.Lock()
				answers[string(begin[9:])]++
				mu.Unlock()
			}
		}()
	}
	return func() map[string]int {
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(answers)
	}
}

// Clients that ask for much and read nothing take little memory, and slow down no other client much. With -frontier.long it
// is the size for which docs/http.md has figures. A server remembers the URLs that were ended, so its memory depends on their
// number: each row is some number of pages, not some time.
func TestMemoryOfAServerWhoseClientsDoNotRead(t *testing.T) {
	urls, hosts, idle, pages := 60_000, 3_000, 500, 200
	if *long {
		urls, hosts, idle, pages = 600_000, 5_000, 10_000, 20_000
	}
	s := startLoaded(t, "-dir", filepath.Join(t.TempDir(), "state"))
	s.add(urls, hosts)
	var links []byte
	for i := range 100 {
		links = fmt.Appendf(links, `,{"url":"http://host%d.example/links/%d"}`, i%7, i)
	}
	for _, x := range []struct {
		what    string
		n       int
		request string
		workers int
	}{
		{what: "nothing else"},
		{what: "unread exports", n: 60, request: "GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{what: "unread lists", n: 400, request: "GET /v1/list HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{what: "connections without a request", n: idle},
		{what: "workers whose pages have 100 links", workers: 64},
	} {
		before, heap := s.resident(), s.heap()
		closeAll := s.unread(x.n, x.request)
		peak, pages := before, pages
		if x.workers > 0 {
			pages /= 20 // the workers take as many each
		}
		stop := make(chan struct{})
		var others sync.WaitGroup
		for range x.workers {
			others.Go(func() {
				c := &http.Client{Transport: &http.Transport{}}
				defer c.CloseIdleConnections()
				for {
					select {
					case <-stop:
						return
					default:
						assert.NoError(t, s.page(c, links[1:]))
					}
				}
			})
		}
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					peak = max(peak, s.resident())
				}
			}
		})
		c := &http.Client{Transport: &http.Transport{}}
		var took []time.Duration
		for range pages {
			begun := time.Now()
			require.NoError(t, s.page(c, nil))
			took = append(took, time.Since(begun)/2)
		}
		c.CloseIdleConnections()
		answers := closeAll()
		close(stop)
		others.Wait()
		grown := s.heap() - heap
		slices.Sort(took)
		var all time.Duration
		for _, d := range took {
			all += d
		}
		t.Logf("%d %s: memory %d MiB before, %d MiB at most; the heap grew by %d MiB; one honest client: %.0f requests/s, p50 %v, p99 %v; answers %v", max(x.n, x.workers), x.what,
			before>>20, peak>>20, grown>>20, float64(len(took))/all.Seconds(), took[len(took)/2].Round(10*time.Microsecond), took[int(math.Ceil(float64(len(took))*0.99))-1].Round(10*time.Microsecond), answers)
		assert.Less(t, grown, int64(160<<20), x.what)
	}
}
