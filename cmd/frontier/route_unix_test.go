// This file tests routers before parts, each in a process of its own; some are killed.

//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
)

// spawn starts the command in a process, and waits until it answers at an address.
func spawn(t *testing.T, address string, args ...string) *exec.Cmd {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(os.Args[0], append(args, "-http", address)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if res, err := http.Get("http://" + address + "/livez"); err == nil {
			_ = res.Body.Close()
			return cmd
		}
		if time.Now().After(end) {
			b, _ := os.ReadFile(log.Name())
			t.Fatalf("%v does not answer:\n%s", args, b)
		}
	}
}

// The hosts of a crawl are divided over three servers. One of them is killed and started again, and so is
// one of the two routers: each page is fetched once, or again if it was out when its server died.
func TestACrawlOverRoutersAndParts(t *testing.T) {
	dir := t.TempDir()
	part := func(name, address string) *exec.Cmd {
		return spawn(t, address, "serve", "-quiet", "-dir", filepath.Join(dir, name), "-grpc", "off", "-delay", "1ms", "-lease-time", "2s")
	}
	parts, route := map[string]string{}, []string{"route", "-quiet"}
	cmds := map[string]*exec.Cmd{}
	for _, name := range []string{"a", "b", "c"} {
		parts[name] = freePort(t)
		cmds[name] = part(name, parts[name])
		route = append(route, "-part", name+"=http://"+parts[name])
	}
	one, two := freePort(t), freePort(t)
	first := spawn(t, one, route...)
	second := spawn(t, two, route...)

	c, err := client.New("http://"+one+",http://"+two, client.Options{Wait: time.Second})
	require.NoError(t, err)
	defer c.Close()
	const pages, hosts = 1500, 50
	url := func(n int) string { return fmt.Sprintf("http://www.h%d.example/%d", n%hosts, n) }
	_, err = c.Add(t.Context(), frontier.Entry{URL: url(0)})
	require.NoError(t, err)
	var mu sync.Mutex
	fetched := map[string]int{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = c.Work(ctx, 16, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
		mu.Lock()
		fetched[l.Entry.URL]++
		switch n := len(fetched); {
		case n == 300 && first != nil:
			_ = first.Process.Kill()
			first = nil
		case n == 600 && cmds["b"] != nil:
			_ = cmds["b"].Process.Kill()
			_ = cmds["b"].Wait()
			cmds["b"] = nil
			go part("b", parts["b"])
		}
		mu.Unlock()
		return read(l.Entry.URL, pages, url)
	})
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	assert.Nil(t, cmds["b"], "it was killed")
	assert.Len(t, fetched, pages)
	again := 0
	for u, n := range fetched {
		assert.LessOrEqual(t, n, 2, u)
		again += n - 1
	}
	t.Logf("%d pages were fetched again", again)
	assert.LessOrEqual(t, again, 40, "those that were out, or whose ends were not acknowledged")
	s := c.Stats()
	assert.Zero(t, s.Waiting+s.Scheduled+s.Leased)

	// The command crawls through a router: all hosts have one address.
	web, addr := serve(t, 20)
	args := []string{"-frontier", "http://" + two, "-frontier-crawl", "cmd", "-max-pages", "40", "-resolve", "*.example=" + addr, "http://a.example/1", "http://b.example/1"}
	status, _, stderr := crawlAt(t.Context(), args...)
	assert.Equal(t, exitLimit, status, stderr)
	asked := 0
	for u, n := range web.asks {
		if !strings.HasSuffix(u, "/robots.txt") {
			assert.Equal(t, 1, n, u)
			asked++
		}
	}
	assert.GreaterOrEqual(t, asked, 40)
	require.NoError(t, second.Process.Signal(os.Interrupt))
	assert.NoError(t, second.Wait(), "a router that is stopped ends with status 0")
}

// read is the visit of one of a number of pages: each links to three others.
func read(at string, pages int, url func(int) string) (o frontier.Outcome, err error) {
	var n, host int
	if _, err = fmt.Sscanf(at, "http://www.h%d.example/%d", &host, &n); err != nil {
		return o, err
	}
	for i := 3*n + 1; i <= 3*n+3 && i < pages; i++ {
		o.Add = append(o.Add, frontier.Entry{URL: url(i)})
	}
	return o, nil
}

// One part is a fleet, whose owner is killed: the router finds the next one. The other part goes on meanwhile.
func TestARouterOverAFleet(t *testing.T) {
	all, _, _, within := begin(t)
	var urls []string
	for _, m := range all {
		urls = append(urls, "http://"+m.address)
	}
	alone, at := freePort(t), freePort(t)
	spawn(t, alone, "serve", "-quiet", "-dir", filepath.Join(t.TempDir(), "alone"), "-grpc", "off", "-delay", "1s", "-lease-time", "6s")
	spawn(t, at, "route", "-quiet", "-part", "fleet="+strings.Join(urls, ","), "-part", "alone=http://"+alone)
	owner := func() *machine {
		for _, m := range all {
			if _, said := m.get("/v1/fleet"); strings.Contains(said, `"state":"open","owner":"`) {
				name := strings.SplitN(strings.SplitN(said, `"owner":"`, 2)[1], `"`, 2)[0]
				return all[strings.Index("abc", name)]
			}
		}
		return nil
	}
	within(time.Minute, "open", func() bool { return owner() != nil })

	c, err := client.New("http://"+at, client.Options{Wait: time.Second})
	require.NoError(t, err)
	defer c.Close()
	const pages, hosts = 600, 60
	url := func(n int) string { return fmt.Sprintf("http://www.h%d.example/%d", n%hosts, n) }
	_, err = c.Add(t.Context(), frontier.Entry{URL: url(0)})
	require.NoError(t, err)
	var mu sync.Mutex
	fetched, last := map[string]int{}, map[string]time.Time{}
	early, killed := 0, false
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err = c.Work(ctx, 16, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		if fetched[l.Entry.URL]++; time.Since(last[l.Host]) < time.Second {
			early++
		}
		last[l.Host] = time.Now()
		if len(fetched) == pages/3 && !killed {
			killed = true
			_ = owner().cmd.Process.Kill()
		}
		return read(l.Entry.URL, pages, url)
	})
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	assert.True(t, killed)
	assert.Len(t, fetched, pages)
	assert.Zero(t, early)
	for u, n := range fetched {
		assert.LessOrEqual(t, n, 2, u)
	}
}

func TestOptionsOfARouter(t *testing.T) {
	for says, args := range map[string][]string{
		"-part is missing; want NAME=URL":                  nil,
		`-part is "a"; want a name`:                        {"-part", "a"},
		"-part: part a: the address is 10.0.0.1:8348":      {"-part", "a=10.0.0.1:8348"},
		"is there twice":                                   {"-part", "a=http://10.0.0.1:8348", "-part", "b=http://10.0.0.1:8348"},
		"-http is 0.0.0.0:8347; other machines may":        {"-part", "a=http://127.0.0.1:8348", "-http", "0.0.0.0:8347"},
		"-tls-cert and -tls-key: want both":                {"-part", "a=http://10.0.0.1:8348", "-tls-key", "x"},
		"-http is nowhere; want host:port, or unix: and a": {"-part", "a=http://10.0.0.1:8348", "-http", "nowhere"},
		"what is \"x\"?":                                   {"x"},
		"needs -grpc other than off":                       {"-part", "a=http://10.0.0.1:8348", "-part-grpc", "a=http://10.0.0.1:7071"},
		"-part-grpc is missing; want NAME=URL":             {"-part", "a=http://10.0.0.1:8348", "-grpc", "127.0.0.1:7071"},
		"want the parts that -part has":                    {"-part", "a=http://10.0.0.1:8348", "-grpc", "127.0.0.1:7071", "-part-grpc", "b=http://10.0.0.1:7071"},
		"-grpc is 0.0.0.0:7071; other machines may":        {"-part", "a=http://10.0.0.1:8348", "-grpc", "0.0.0.0:7071", "-part-grpc", "a=http://127.0.0.1:7071"},
		`-part-grpc is "a=http://10.0.0.1"; want a port`:   {"-part", "a=http://10.0.0.1:8348", "-grpc", "127.0.0.1:7071", "-part-grpc", "a=http://10.0.0.1"},
	} {
		status, _, said := typing(t, append([]string{"route"}, args...)...)
		assert.Equal(t, exitUsage, status, args)
		assert.Contains(t, said, strings.TrimPrefix(says, "-part: "), args)
	}
}
