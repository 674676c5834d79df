// This file gives a crawl of real sites a bad day: everything that goes wrong around a
// process that runs for months goes wrong within minutes. At the end the crawl must have
// the pages of an undisturbed one, and the servers no complaint.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill/spilltest"
)

var day = flag.Duration("frontier.day", 0, "give a crawl of real sites a bad day whose troubles last so `long` each, as in 30s")

// asSleeper in the environment makes the test program a crawl whose clock has slept for
// so long, and sleeps eight hours more at each SIGUSR2.
const asSleeper = "FRONTIER_TEST_SLEPT"

const nap = 8 * time.Hour

// sleepyClock is the system's on a machine that was suspended: the time of day is ahead,
// while timers and the steady clock stood still.
type sleepyClock struct {
	began time.Time
	slept atomic.Int64
}

func (c *sleepyClock) Now() time.Time         { return time.Now().Round(0).Add(time.Duration(c.slept.Load())) }
func (c *sleepyClock) Elapsed() time.Duration { return time.Since(c.began) }
func (c *sleepyClock) AfterFunc(d time.Duration, f func()) frontier.Timer {
	return time.AfterFunc(d, f)
}

func init() {
	if slept := os.Getenv(asSleeper); slept != "" {
		sleeper(slept)
	}
}

// sleeper is the crawl command with such a clock.
func sleeper(slept string) {
	already, err := time.ParseDuration(slept)
	if err != nil {
		panic(err)
	}
	clock := &sleepyClock{began: time.Now()}
	clock.slept.Store(int64(already))
	naps := make(chan os.Signal, 1)
	signal.Notify(naps, syscall.SIGUSR2)
	go func() {
		for range naps {
			clock.slept.Add(int64(nap))
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := newSettings()
	s.frontier.Clock = clock
	var code int
	root := &cli.Command{Name: "frontier", Commands: []*cli.Command{s.command(&code, "crawl", "")}, ExitErrHandler: func(context.Context, *cli.Command, error) {}}
	if err := root.Run(ctx, append([]string{"frontier"}, os.Args[1:]...)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = exitUsage
	}
	os.Exit(code)
}

// Sites of a day: packages of crawler/realweb/packages.
var daySites = []string{"git-doc.test", "debian-faq.test", "scrapy-doc.test", "debian-policy.test", "exim-doc.test", "nodejs-doc.test"}

// sites is the realweb server while it runs.
type sites struct {
	bin, log, port string
	cmd            *exec.Cmd
}

// start serves each site at an address of its own.
func (s *sites) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(filepath.Join(s.bin, "serve"), "-listen", "127.0.0.1:"+s.port, "-spread", "127.30.0.1", "-hosts-out", s.log+".hosts",
		"-log", s.log, "-only", strings.Join(daySites, ","), "-latency", "20ms", "-jitter", "20ms")
	s.cmd.Stderr = os.Stderr
	require.NoError(t, s.cmd.Start())
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
}

func (s *sites) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// answers are "status host/path" of every URL that got a final answer.
func (s *sites) answers(t *testing.T) []string {
	t.Helper()
	f, err := os.Open(s.log)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	defer f.Close()
	var all []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r struct {
			Kind, Host, Path string
			Status           int
			ClientGone       bool `json:"client_gone"`
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil { // the server is still writing it
			continue
		}
		if r.Kind == "req" && r.Path != "/robots.txt" && !r.ClientGone && slices.Contains([]int{200, 301, 302, 403, 404, 410}, r.Status) {
			all = append(all, fmt.Sprintf("%d %s%s", r.Status, r.Host, r.Path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// diary is the file of what crawls print.
type diary string

func (d diary) String() string {
	b, err := os.ReadFile(string(d))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// dayCrawl is a command that runs.
type dayCrawl struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  diary
	ends chan error
}

func beginDay(t *testing.T, slept time.Duration, out diary, args ...string) *dayCrawl {
	t.Helper()
	c := &dayCrawl{t: t, cmd: exec.Command(os.Args[0], append([]string{"crawl"}, args...)...), out: out, ends: make(chan error, 1)}
	c.cmd.Env = append(os.Environ(), asSleeper+"="+slept.String())
	f, err := os.OpenFile(string(out), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer f.Close()
	c.cmd.Stdout, c.cmd.Stderr = f, f
	require.NoError(t, c.cmd.Start())
	go func() { c.ends <- c.cmd.Wait() }()
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// running fails if the crawl has ended.
func (c *dayCrawl) running(during string) {
	c.t.Helper()
	select {
	case err := <-c.ends:
		require.FailNow(c.t, "the crawl ended", "during %s: %v\n%s", during, err, c.out)
	default:
	}
}

func (c *dayCrawl) wait(what string, long time.Duration) error {
	c.t.Helper()
	select {
	case err := <-c.ends:
		return err
	case <-time.After(long):
		_ = c.cmd.Process.Signal(syscall.SIGQUIT)
		<-c.ends
		require.FailNow(c.t, "the crawl does not end", "%s\n%s", what, c.out)
		return nil
	}
}

func (c *dayCrawl) signal(s syscall.Signal) { assert.NoError(c.t, c.cmd.Process.Signal(s)) }

func (c *dayCrawl) kill() {
	c.signal(syscall.SIGKILL)
	<-c.ends
}

// withoutDescriptors leaves the crawl no descriptor beyond those it has.
func (c *dayCrawl) withoutDescriptors(long time.Duration) {
	pid := c.cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(c.t, err)
	var before unix.Rlimit
	require.NoError(c.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
	require.NoError(c.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)), Max: before.Max}, nil))
	c.pass("no descriptors", long)
	require.NoError(c.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
}

// fill takes all space of a volume, and returns what gives it back.
func fill(t *testing.T, dir string) func() {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	require.NoError(t, err)
	for block := make([]byte, 1<<20); len(block) > 0; {
		n, err := f.Write(block)
		if err == nil && n == len(block) {
			continue
		}
		block = block[:len(block)/2]
	}
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(path)) }
}

// pass lets so much time pass under the eyes of the test.
func (c *dayCrawl) pass(what string, long time.Duration) {
	for end := time.Now().Add(long); time.Now().Before(end); {
		c.running(what)
		<-time.After(100 * time.Millisecond)
	}
}

// recovered waits until the log says that what failed works again.
func (c *dayCrawl) recovered(after string) {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
		c.running(after)
		log := c.out.String()
		fails := strings.Count(log, "the store fails")
		if strings.Count(log, "the store works again") == fails && strings.Count(log, `msg="store works again"`) == strings.Count(log, `msg="store error"`) {
			return
		}
		require.True(c.t, time.Now().Before(end), "the store does not work again after %s\n%s", after, log)
	}
}

// more waits until the sites have answered so many pages more.
func (c *dayCrawl) more(s *sites, pages int, after string) {
	c.t.Helper()
	want := len(s.answers(c.t)) + pages
	begun := time.Now()
	for len(s.answers(c.t)) < want {
		c.running(after)
		require.Less(c.t, time.Since(begun), 3*time.Minute, "no progress after %s\n%s", after, c.out)
		<-time.After(200 * time.Millisecond)
	}
	c.t.Logf("after %s: %d pages more within %v", after, pages, time.Since(begun).Round(time.Second))
}

// TestADayInTheLife takes minutes: go test -run TestADayInTheLife ./cmd/frontier -frontier.day=30s
func TestADayInTheLife(t *testing.T) {
	if *day == 0 {
		t.Skip("a bad day takes minutes: -frontier.day 30s")
	}
	realweb := os.Getenv("REALWEB")
	if realweb == "" {
		realweb = filepath.Join("..", "..", "..", "shared", "realweb")
	}
	if _, err := os.Stat(filepath.Join(realweb, "serve")); err != nil {
		require.Empty(t, os.Getenv("CI"), "realweb must be there: %v", err)
		t.Skipf("no realweb: %v", err)
	}
	bin := t.TempDir()
	for _, tool := range []string{"serve", "check"} {
		build := exec.Command("go", "build", "-o", filepath.Join(bin, tool), "./"+tool)
		build.Dir = realweb
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	const delay = 500 * time.Millisecond
	args := func(dir string, more ...string) []string {
		a := []string{"-dir", dir, "-page", "off", "-workers", "16", "-delay", delay.String(), "-user-agent", "realweb-test/1.0", "-contact", "http://contact.example/"}
		for i, site := range daySites {
			a = append(a, "-resolve", fmt.Sprintf("%s=127.30.0.%d:%s", site, i+1, port))
		}
		return append(a, more...)
	}
	var seeds []string
	for _, site := range daySites {
		seeds = append(seeds, "http://"+site+"/")
	}

	calm := &sites{bin: bin, log: filepath.Join(t.TempDir(), "calm.jsonl"), port: port}
	calm.start(t)
	defer calm.stop()
	out := diary(filepath.Join(t.TempDir(), "calm.log"))
	c := beginDay(t, 0, out, args(filepath.Join(t.TempDir(), "calm"), seeds...)...)
	require.NoError(t, c.wait("an undisturbed crawl", 10*time.Minute), "%s", out)
	calm.stop()
	want := calm.answers(t)
	require.Greater(t, len(want), 300, "%s", out)
	t.Logf("undisturbed: %d URLs answered", len(want))

	volume := spilltest.NewVolume(t, 384<<20, spilltest.Quiet)
	dir := func() string { return filepath.Join(volume.Dir, "state") }
	web := &sites{bin: bin, log: filepath.Join(t.TempDir(), "day.jsonl"), port: port}
	defer web.stop()
	out = diary(filepath.Join(t.TempDir(), "day.log"))
	slept := time.Duration(0)
	start := func(more ...string) *dayCrawl { return beginDay(t, slept, out, args(dir(), more...)...) }

	c = start(seeds...)
	c.pass("the network away", 2**day)
	web.start(t)
	c.more(web, 20, "the network away")

	c.signal(syscall.SIGUSR2)
	slept += nap
	c.more(web, 20, "a suspend")

	c.withoutDescriptors(*day)
	c.more(web, 20, "no descriptors")
	c.recovered("no descriptors")

	empty := fill(t, volume.Dir)
	c.pass("a full disk", *day)
	empty()
	c.more(web, 20, "a full disk")
	c.recovered("a full disk")

	seed := rand.Uint64()
	t.Logf("kills with seed %d", seed)
	for r, i := rand.New(rand.NewPCG(seed, 1)), 0; i < 5; i++ {
		c.kill()
		c = start()
		c.pass("a restart", time.Duration(500+r.IntN(3000))*time.Millisecond)
	}
	c.more(web, 20, "kills")

	c.kill()
	left := volume.PowerLoss(t)
	volume.Unmount()
	volume = left
	c = start()
	c.more(web, 10, "a loss of power")

	c.signal(syscall.SIGTERM)
	_ = c.wait("a stop", time.Minute) // its status says that URLs wait
	c = start("-exclude", "html", "http://debian-faq.test/")
	select {
	case <-time.After(5 * time.Second):
		c.signal(syscall.SIGTERM)
		_ = c.wait("a stop", time.Minute)
	case <-c.ends: // nothing is left that it wants
	}

	c = start(append([]string{"-exclude", ""}, seeds...)...)
	require.NoError(t, c.wait("the rest of the day", 15*time.Minute), "%s", out)
	web.stop()
	t.Logf("the crawl's log:\n%s", out)
	assert.Equal(t, want, web.answers(t), "the pages of an undisturbed crawl")
	report, err := exec.Command(filepath.Join(bin, "check"), "-delay", delay.String(), "-agent", "realweb-test", web.log).Output()
	assert.NoError(t, err, "%s", report)
	warnings(t, out.String())
}

// warnings checks that each trouble of the day was logged once.
func warnings(t *testing.T, log string) {
	t.Helper()
	count := map[string]int{}
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "level=WARN") && !strings.Contains(line, "level=ERROR") {
			continue
		}
		_, message, _ := strings.Cut(line, "msg=")
		if quoted, err := strconv.QuotedPrefix(message); err == nil {
			message, _ = strconv.Unquote(quoted)
		} else {
			message, _, _ = strings.Cut(message, " ")
		}
		count[message]++
	}
	for message, n := range count {
		t.Logf("%3d x %s", n, message)
	}
	for _, message := range []string{
		"no host answers: the network seems to be away", "hosts answer: the network is back", "clock stepped",
		"waiting URLs are outside the scope of this command: they are parked, and come back when the scope is wide enough again",
		"waiting URLs are not wanted by this run: they are parked, and come back when it wants them again",
	} {
		assert.Equal(t, 1, count[message], message)
	}
	// With a full disk, and without descriptors; what the store keeps for itself may be
	// enough for a short trouble.
	fails := count["the store fails: the crawl waits until it works again"]
	assert.LessOrEqual(t, fails, 2)
	assert.Equal(t, fails, count["the store works again: the crawl goes on"])
	assert.Equal(t, fails, count["store error"])
	assert.Equal(t, fails, count["store works again"])
	for message, n := range count {
		assert.LessOrEqual(t, n, 2, message)
	}
}
