package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}

// asCommand in the environment makes the test program the command.
const asCommand = "FRONTIER_TEST_COMMAND"

// parseCrawl reads a command line of crawl.
func parseCrawl(args []string) (*settings, error) {
	s := newSettings()
	c := &cli.Command{Flags: s.flags(), Action: func(ctx context.Context, c *cli.Command) error {
		s.find(seedsKey).typed = c.Args().Slice()
		return s.judge(ctx)
	}}
	return s, c.Run(context.Background(), append([]string{"crawl"}, args...))
}

// chain serves hosts whose page N links to page N+1, up to last. It counts the
// requests for each URL, and calls each before it answers.
type chain struct {
	last int
	each func(url string)

	mu   sync.Mutex
	asks map[string]int
	ua   string
}

func (c *chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := "http://" + r.Host + r.URL.Path
	c.mu.Lock()
	c.asks[url]++
	c.ua = r.UserAgent()
	c.mu.Unlock()
	if c.each != nil {
		c.each(url)
	}
	var n int
	switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); {
	case r.URL.Path == "/robots.txt":
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	case err != nil || n > c.last:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a href="/%d">next</a> <a href="/private">private</a> <a href="http://other.example/1">other</a>`, n+1)
	}
}

func serve(t *testing.T, last int) (*chain, string) {
	c := &chain{last: last, asks: map[string]int{}}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return c, s.Listener.Addr().String()
}

func command(t *testing.T, ctx context.Context, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(ctx, append([]string{"crawl", "-page", "off", "-delay", "1ms", "-workers", "4"}, args...), strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

func TestCrawl(t *testing.T) {
	web, addr := serve(t, 20)
	status, out, stderr := command(t, t.Context(), "-resolve", "*.example="+addr, "-user-agent", "mybot/1", "-contact", "https://me.example/bot",
		"http://a.example/1", "b.example/1")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "40 pages, 0 redirects, 2 gone, 0 refused, 0 failed fetches, 0 URLs given up, 2 denied by robots.txt, 0 unreachable, 0 blocked; 0 waiting, 0 scheduled")
	assert.Equal(t, "mybot/1 (+https://me.example/bot)", web.ua)
	assert.Len(t, web.asks, 2*(20+1+1), "pages, the one that is missing, robots.txt")
	for u, n := range web.asks {
		assert.Equal(t, 1, n, u)
		assert.NotContains(t, u, "other.example")
	}
}

func TestCrawlThroughAProxyWithLimits(t *testing.T) {
	web, addr := serve(t, 20)
	status, out, stderr := command(t, t.Context(), "-proxy", "http://"+addr, "-max-depth", "5", "-exclude", "/3$", "-scope-domains", "example",
		"-max-pages-per-host", "4", "http://a.example/5")
	require.Equal(t, exitLimit, status, stderr)
	assert.Contains(t, out, "6 pages", "4 of a, 2 of other")
	assert.Equal(t, 1, web.asks["http://other.example/1"])
	assert.Zero(t, web.asks["http://other.example/3"])
}

func TestCrawlStopsAndGoesOn(t *testing.T) {
	web, addr := serve(t, 30)
	dir := filepath.Join(t.TempDir(), "state")
	doneLog := filepath.Join(t.TempDir(), "done")
	args := []string{"-dir", dir, "-done-log", doneLog, "-proxy", "http://" + addr, "http://a.example/1"}
	ctx, cancel := context.WithCancel(t.Context())
	web.each = func(url string) {
		if strings.HasSuffix(url, "/10") {
			cancel()
		}
	}
	status, out, stderr := command(t, ctx, args...)
	require.Equal(t, exitStopped, status, stderr)
	assert.Contains(t, stderr, "stopped: 1 URL waits; the same command goes on from here")
	assert.Contains(t, out, "10 pages")
	assert.FileExists(t, filepath.Join(dir, "traps"), "what the guards have counted")

	status, out, stderr = command(t, t.Context(), args...)
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "20 pages")

	status, out, stderr = command(t, t.Context(), args...)
	require.Zero(t, status, stderr)
	assert.Contains(t, stderr, "nothing is left to crawl")
	assert.Contains(t, out, "0 pages")

	status, _, stderr = command(t, t.Context(), "-dir", dir, "-scope-hosts", "a.example")
	require.Zero(t, status, stderr)

	lines, err := os.ReadFile(doneLog)
	require.NoError(t, err)
	var want []string
	for i := range 31 {
		u := fmt.Sprintf("http://a.example/%d", i+1)
		want = append(want, u)
		assert.Equal(t, 1, web.asks[u], u)
	}
	got := strings.Fields(string(lines))
	slices.Sort(got)
	slices.Sort(want)
	assert.Equal(t, want, got)
}

func TestStopInMemory(t *testing.T) {
	web, addr := serve(t, 30)
	ctx, cancel := context.WithCancel(t.Context())
	web.each = func(string) { cancel() }
	status, _, stderr := command(t, ctx, "-proxy", "http://"+addr, "http://a.example/1")
	assert.Equal(t, exitStopped, status)
	assert.Contains(t, stderr, "nothing is kept")
}

func TestBadCommandLines(t *testing.T) {
	for want, args := range map[string][]string{
		"No seed is given": {"-dir", filepath.Join(t.TempDir(), "none")},
		"-delay cannot be combined with -delay-factor":          {"-delay-factor", "5", "http://a.example/"},
		"there is no flag -depth":                               {"-depth", "5", "http://a.example/"},
		"-max-depth is -1; want >= 0":                           {"http://a.example/", "-max-depth", "-1"},
		`seed "ftp:"`:                                           {"ftp:"},
		`seed "ftp://a.example/": want http or https`:           {"ftp://a.example/"},
		`seed "mailto:x@a.example"`:                             {"mailto:x@a.example"},
		"-workers is 0; want 1 to 65536":                        {"-workers", "0", "http://a.example/"},
		"-workers is 100000000; want 1 to 65536":                {"-workers", "100000000", "http://a.example/"},
		`seed "http://a..example/": host "a..example" has an`:   {"http://a..example/"},
		"-warc is frontier_test.go; want a folder":              {"-warc", "frontier_test.go", "http://a.example/"},
		"-seen is frontier_test.go; want a folder":              {"-seen", "frontier_test.go", "http://a.example/"},
		"-stats is frontier_test.go; want a folder":             {"-stats", "frontier_test.go", "http://a.example/"},
		"-temp is frontier_test.go; want a folder":              {"-temp", "frontier_test.go", "http://a.example/"},
		`-include is "("; want a pattern: error parsing regexp`: {"-include", "(", "http://a.example/"},
		`-resolve is "a"; want host=address`:                    {"-resolve", "a", "http://a.example/"},
		`-resolve is "a=1.2.3.4:99999"; want a port`:            {"-resolve", "a=1.2.3.4:99999", "http://a.example/"},
		`-proxy: it is "http://x:99999"; want a port`:           {"-proxy", "http://x:99999", "http://a.example/"},
		"-max-retry-after is 0s; want >= 1ms":                   {"-max-retry-after", "0", "http://a.example/"},
		"-quarantine-after is 0; want 1 to 10000":               {"-quarantine-after", "0", "http://a.example/"},
		"-quarantine-probe is 1ns; want 1ms to 720h":            {"-quarantine-probe", "1ns", "http://a.example/"},
		"-backoff-max 2000h0m0s: want 1ms <= base <= max":       {"-backoff-max", "2000h", "http://a.example/"},
		"-delay is 1ns; want 0, or 1ms to 720h":                 {"-delay", "1ns", "http://a.example/"},
		"-max-url is 0; want >= 1":                              {"-max-url", "0", "http://a.example/"},
		"-probes is -1; want 0 to 250":                          {"-probes", "-1", "http://a.example/"},
		"-max-pages is -5; want >= 0":                           {"-max-pages", "-5", "http://a.example/"},
		"-max-time is -1s; want >= 0":                           {"-max-time", "-1s", "http://a.example/"},
		"-log-format is xml; want text or json":                 {"-log-format", "xml", "http://a.example/"},
		"-quiet cannot be combined with -v":                     {"-quiet", "-v", "http://a.example/"},
		`seed "htp://a.example/": want http or https`:           {"htp://a.example/"},
		`seed "intranet": want a URL like`:                      {"intranet"},
		`seed "/etc/passwd": want a URL like`:                   {"/etc/passwd"},
		`-scope-hosts is "http://a/"; want a name without`:      {"-scope-hosts", "http://a/", "http://a.example/"},
		`-scope-domains is "*.a.example"; want a name`:          {"-scope-domains", "*.a.example", "http://a.example/"},
		`-deny-hosts is ",,"; want a list`:                      {"-deny-hosts", ",,", "http://a.example/"},
		`-page-names: the name "http://a/"; want a host`:        {"-page", "127.0.0.1:0", "-page-names", "b.example,http://a/", "http://a.example/"},
		"-temp is /proc/1; want a folder that is there and can": {"-temp", "/proc/1", "http://a.example/"},
		`a crawler sends no user name or password`:              {"http://me:secret@a.example/"},
		"-memory is 1; want at least 8M":                        {"-memory", "1", "http://a.example/"},
		`-schemes is "gopherr"; want http`:                      {"-schemes", "https,gopherr", "http://a.example/"},
		"-sync needs -dir":                                      {"-sync", "http://a.example/"},
		"want a number of bytes":                                {"-max-body", "5x", "http://a.example/"},
		"-retry-tries 0":                                        {"-retry-tries", "0", "http://a.example/"},
		"-delay is -1s; want 0, or 1ms to 720h":                 {"-delay", "-1s", "http://a.example/"},
		`-timeout is "soon"; want a time as in`:                 {"-timeout", "soon", "http://a.example/"},
		`-allow-network is "x"; want networks`:                  {"-allow-network", "x", "http://a.example/"},
		`-dns: dns: options: Servers has "ns.example"`:          {"-dns", "ns.example", "http://a.example/"},
		"-max-repeats is 0; want > 0":                           {"-max-repeats", "0", "http://a.example/"},
		"-max-query is -1; want >= 0":                           {"-max-query", "-1", "http://a.example/"},
		`-deny-hosts is "http://a.example/"; want a name`:       {"-deny-hosts", "http://a.example/", "http://a.example/"},
		`-deny-hosts is "a.example:80"; want a name`:            {"-deny-hosts", "a.example:80", "http://a.example/"},
		`-deny-domains is "*.a.example"; want a name`:           {"-deny-domains", "b.example,*.a.example", "http://a.example/"},
		`-deny-ext is "*.iso"; want what comes after`:           {"-deny-ext", ".jpg,*.iso", "http://a.example/"},
		`-ext is "tar.gz"; want what comes after`:               {"-ext", "tar.gz", "http://a.example/"},
		`-content-types is "html"; want types as in text/html`:  {"-content-types", "image/*,html", "http://a.example/"},
		`-content-types is "text/"; want types as in text/html`: {"-content-types", "text/", "http://a.example/"},
		`-content-types is "text/html;charset=utf-8"; want`:     {"-content-types", "text/html;charset=utf-8", "http://a.example/"},
		`-deny-hosts is ".b.example"; want a name`:              {"-deny-hosts", ".b.example", "http://a.example/"},
		"-min-rate is 0; want > 0":                              {"-min-rate", "0", "http://a.example/"},
		"-timeout is 0s; want > 0":                              {"-timeout", "0", "http://a.example/"},
		"without seeds, where may the crawl go?":                {"-dir", t.TempDir()},
		`Proxy is "ftp://x"; want http://`:                      {"-proxy", "ftp://x", "http://a.example/"},
		`UserAgent is "a\nb"; want no control characters`:       {"-user-agent", "a\nb", "http://a.example/"},
	} {
		status, out, stderr := command(t, t.Context(), args...)
		assert.Equal(t, exitUsage, status, want)
		assert.Empty(t, out)
		assert.Contains(t, stderr, want)
	}
	var out, err bytes.Buffer
	assert.Equal(t, exitUsage, run(t.Context(), []string{"crawl", "-min-delay", "9s", "-max-delay", "1s", "-workers", "-1"}, strings.NewReader(""), &out, &err))
	assert.Contains(t, err.String(), "-min-delay 9s, -max-delay 1s: want the least pause not to be longer")
	assert.Contains(t, err.String(), "-workers is -1", "all faults at once")
	status, _, stderr := command(t, t.Context(), "-workers", "x", "-sync=maybe", "-max-body", "5x", "-probes", "-1", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Equal(t, []string{`frontier: crawl: -workers is "x"; want an integer`, `-sync is "maybe"; want true or false`,
		`-max-body is "5x"; want a number of bytes, k, M or G may follow`, "-probes is -1; want 0 to 250"}, strings.Split(stderr, "\n")[:4], "and each once")
}

func TestBadFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("hello"), 0o600))
	status, _, stderr := command(t, t.Context(), "-dir", file, "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, file)
	status, _, stderr = command(t, t.Context(), "-done-log", filepath.Join(file, "x"), "http://a.example/")
	assert.Equal(t, exitError, status)
	assert.Contains(t, stderr, file)
}

func TestSeedsOutOfScope(t *testing.T) {
	status, _, stderr := command(t, t.Context(), "-scope-hosts", "b.example", "http://a.example/")
	assert.Equal(t, exitError, status)
	assert.Contains(t, stderr, `no seed can be crawled: frontier: entry 0 "http://a.example/": not in scope`)
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		out    string
		err    string
	}{
		{nil, exitUsage, "", "which command?"},
		{[]string{"help"}, exitOK, "explain ", ""},
		{[]string{"fly"}, exitUsage, "", `there is no command "fly"`},
		{[]string{"crawl", "-help"}, exitOK, "-delay pause", ""},
		{[]string{completing, "crawl", "-delay"}, exitOK, "-delay-factor\t", ""},
	} {
		var out, err bytes.Buffer
		assert.Equal(t, c.status, run(t.Context(), c.args, strings.NewReader(""), &out, &err), c.args)
		assert.Contains(t, out.String(), c.out)
		assert.Contains(t, err.String(), c.err)
	}
}

func TestByteSize(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "1023": "1023", "1k": "1k", "1024": "1k", "10M": "10M", "3G": "3G", "1536k": "1536k"} {
		var b byteSize
		require.NoError(t, b.Set(in))
		assert.Equal(t, want, b.String(), in)
	}
	for _, in := range []string{"", "k", "-1", "1.5M", "99999999999G"} {
		var b byteSize
		assert.Error(t, b.Set(in), in)
	}
}

func TestStopTellsWhatFailedMeanwhile(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	web, addr := serve(t, 30)
	ctx, cancel := context.WithCancel(t.Context())
	web.each = func(url string) {
		if strings.HasSuffix(url, "/3") {
			cancel()
		}
	}
	status, _, stderr := command(t, ctx, "-proxy", "http://"+addr, "-done-log", "/dev/full", "http://a.example/1")
	assert.Equal(t, exitError, status)
	assert.Contains(t, stderr, "/dev/full")
}

func TestStopBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, _, stderr := command(t, ctx, "-dir", filepath.Join(t.TempDir(), "state"), "http://a.example/1")
	assert.Equal(t, exitStopped, status, stderr)
	assert.Contains(t, stderr, "stopped; the same command goes on from here")
}

func TestNoGrace(t *testing.T) {
	s, err := parseCrawl([]string{"-grace", "0", "http://a.example/"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, s.crawler.Grace, "not the default")
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"http://a.example/x?y=%0A":                    "http://a.example/x?y=%0A",
		"http://a.example/\nhttp://b.example/":        "http://a.example/%0Ahttp://b.example/",
		"http://a.example/\x1b[31m\u009b\u202e\u2028": "http://a.example/%1B[31m%C2%9B%E2%80%AE%E2%80%A8",
		"http://me:secret@a.example/":                 "http://a.example/",
		"http://a.example/\xff":                       "http://a.example/\ufffd",
	} {
		assert.Equal(t, want, oneLine(in))
	}
}

// seedList is a file of seeds.
func seedList(t *testing.T, seeds ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "seeds")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(seeds, "\n")), 0o600))
	return name
}

// The own network is crawled only when that is said.
func TestNetworks(t *testing.T) {
	web, addr := serve(t, 3)
	status, _, stderr := command(t, t.Context(), "http://"+addr+"/1")
	require.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, `its address is not public, and such are not contacted unless you say so: -allow-network 127.0.0.0/8`)
	status, out, stderr := command(t, t.Context(), "-seeds-file", seedList(t, "http://"+addr+"/1"))
	require.Equal(t, exitNothing, status, stderr)
	assert.Contains(t, out, "0 pages")
	assert.Contains(t, out, "1 blocked")
	assert.Contains(t, out, "-allow-network")
	assert.Contains(t, stderr, "loopback")
	assert.Empty(t, web.asks)
	status, out, stderr = command(t, t.Context(), "-allow-network", "10.0.0.0/8,127.0.0.0/8", "-cookies", "-no-http2", "http://"+addr+"/1")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "3 pages")
}

func TestFilters(t *testing.T) {
	web, addr := serve(t, 20)
	status, out, stderr := command(t, t.Context(), "-resolve", "*.example="+addr, "-deny-hosts", "b.example", "-scope-hosts", "*", "-max-per-pattern", "7",
		"-deny-domains", "other.example", "-content-types", "text/html", "http://a.example/1")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "7 pages")
	assert.Contains(t, out, "not wanted by deny-domains: 7\n")
	assert.Contains(t, out, "not wanted by pattern: 1\n")
	assert.Len(t, web.asks, 7+1)
	status, out, stderr = command(t, t.Context(), "-resolve", "*.example="+addr, "-deny-ext", "jpg", "-content-types", "text/plain", "http://a.example/1")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "1 pages")
	assert.Contains(t, out, "not wanted by content-type: 1\n")
}

func TestHostConcurrency(t *testing.T) {
	for args, want := range map[string]int{"-workers 8": 1, "-workers 8 -host-concurrency 4": 4} {
		s, err := parseCrawl(append(strings.Fields(args), "http://a.example/"))
		require.NoError(t, err)
		assert.Equal(t, want, s.frontier.HostConcurrency)
	}
	for _, bad := range []string{"0", "-1", "1025"} {
		_, err := parseCrawl([]string{"-host-concurrency", bad, "http://a.example/"})
		assert.ErrorContains(t, err, "-host-concurrency is "+bad)
	}
}

// Hosts at one address are contacted one at a time, also while the page watches the requests.
func TestHostsAtOneAddressTakeTurns(t *testing.T) {
	var now, most atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		time.Sleep(20 * time.Millisecond) // long enough for another host's request to come meanwhile
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<a href=/1>1</a><a href=/2>2</a>")
	}))
	defer web.Close()
	status, _, stderr := command(t, t.Context(), "-dir", filepath.Join(t.TempDir(), "state"), "-delay", "1ms", "-resolve", "*.example="+web.Listener.Addr().String(),
		"http://a.example/", "http://b.example/", "http://c.example/", "http://d.example/")
	require.Zero(t, status, stderr)
	assert.EqualValues(t, 1, most.Load())
}
