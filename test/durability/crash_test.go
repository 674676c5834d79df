// This file kills a crawling process at random moments, and examines what is left: everything
// acknowledged, exactly once, in order, and each host left alone for as long as it must be.

package durability

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var crashRounds = flag.Int("frontier.crash-rounds", 2, "how often TestKill kills, with each kind of store")

// report is what a process reported before it died.
type report struct {
	added, done map[crashURL]bool
	leased      map[crashURL]int  // how often: the end of a lease may be reported after the beginning of the next
	bundled     map[crashURL]bool // was handed out with others: if ends of a bundle fail, the last is the first that comes again
	unsure      map[crashURL]bool // was leased when the process died: a Done may have been durable, and not reported
	rests       map[string]time.Time
	gone, going int // URLs of the deleter below are deleted, or may be
	paused      [8]bool
	asked       map[int]bool // a scope may have changed
	asks        [8]int       // so often it was
	ended       bool         // its store must be opened again
	first       int          // number that no process has used
}

func newReport() *report {
	return &report{added: map[crashURL]bool{}, done: map[crashURL]bool{}, leased: map[crashURL]int{}, unsure: map[crashURL]bool{}, bundled: map[crashURL]bool{},
		rests: map[string]time.Time{}, asked: map[int]bool{}, first: 1}
}

// clone is the report as it is now.
func (r *report) clone() *report {
	c := *r
	c.added, c.done, c.leased = maps.Clone(r.added), maps.Clone(r.done), maps.Clone(r.leased)
	c.unsure, c.bundled, c.rests, c.asked = maps.Clone(r.unsure), maps.Clone(r.bundled), maps.Clone(r.rests), maps.Clone(r.asked)
	return &c
}

// hear notes a line of the process.
func (r *report) hear(t testing.TB, line string) {
	t.Helper()
	var what string
	var a, b, c int
	n, err := fmt.Sscan(line, &what, &a, &b, &c)
	if want := map[string]int{"a": 4, "l": 3, "b": 3, "d": 3, "s": 3, "u": 4, "x": 2, "y": 2, "c": 3, "q": 3, "e": 1}[what]; n != want {
		require.NoError(t, err, "the process says %q", line)
	}
	u := crashURL{a, b}
	switch what {
	case "a":
		for i := range c {
			r.added[crashURL{a, b + i}] = true
		}
		r.first = max(r.first, b+c)
	case "b":
		r.bundled[u] = true
	case "l":
		require.False(t, r.done[u], "URL %v was done and is handed out again", u)
		r.leased[u]++
		delete(r.unsure, u)
	case "d":
		r.done[u] = true
		delete(r.leased, u)
	case "s":
		r.leased[u]--
	case "u":
		r.rests[u.host()] = time.UnixMilli(int64(c))
	case "x":
		r.gone = a
	case "y":
		r.going = a
	case "c":
		r.paused[a] = b == 1
		delete(r.asked, a)
	case "q":
		r.asked[a] = true
		r.asks[a]++
	case "e":
		r.ended = true
	}
}

// crawl is the process, and what it says.
type crawl struct {
	*exec.Cmd
	pipe *os.File
	in   *bufio.Reader // of pipe
	part string        // of a line, that was heard
}

// startCrash starts the process.
func startCrash(t testing.TB, dir, store string, first int) *crawl {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$", "-frontier.crash-child="+dir,
		"-frontier.crash-store="+store, "-frontier.crash-first="+strconv.Itoa(first))
	pipe, out, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout = out
	if store != "full" { // it may die with all its stacks
		cmd.Stderr = os.Stderr
	}
	require.NoError(t, cmd.Start())
	require.NoError(t, out.Close())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = pipe.Close()
	})
	return &crawl{Cmd: cmd, pipe: pipe, in: bufio.NewReader(pipe)}
}

// listen reads n lines, or all that are left if n is negative.
func (r *report) listen(t testing.TB, c *crawl, n int) {
	t.Helper()
	for ; n != 0; n-- {
		line, err := c.in.ReadString('\n')
		line, c.part = c.part+line, ""
		if errors.Is(err, io.EOF) && n < 0 {
			return
		}
		require.NoError(t, err, "the process ended by itself: %s", line)
		r.hear(t, line)
	}
}

// stop kills the process: what it did not report is not known.
func (r *report) stop(t testing.TB, c *crawl) {
	t.Helper()
	require.NoError(t, c.Process.Kill())
	r.listen(t, c, -1)
	require.Error(t, c.Wait(), "it was killed")
	for u, n := range r.leased {
		r.unsure[u] = r.unsure[u] || n > 0
	}
	clear(r.leased)
	r.ended = false
	r.first += spanOfKill
}

// holds requires that a folder has all of the report. It empties it.
func (r *report) holds(t testing.TB, dir string) {
	t.Helper()
	db, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
	require.NoError(t, err)
	clk := simclock.New(time.Now())
	opened := clk.Now()
	f, err := frontier.Open(context.Background(), crashOptions(db, clk))
	require.NoError(t, err)
	defer func() {
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.NoError(t, db.Close())
	}()
	r.holdsControls(t, f)
	d := drained{t: t, report: r, seen: map[crashURL]bool{}, last: map[string]int{}, free: map[string]time.Time{}, opened: opened.Add(crashDelay)}
	for {
		l, at, err := f.TryNext()
		switch {
		case errors.Is(err, frontier.ErrExhausted):
			d.complete()
			return
		case errors.Is(err, frontier.ErrNotDue):
			clk.Set(at)
			continue
		}
		require.NoError(t, err)
		d.comes(l, clk.Now())
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
}

func (r *report) holdsControls(t testing.TB, f *frontier.Frontier) {
	t.Helper()
	rules := maps.Collect(f.Rules())
	for i, s := range crashScopes {
		if !r.asked[i] {
			require.Equal(t, r.paused[i], rules[s].Paused == scope.On, "%v is paused: %+v", s, rules[s])
		}
		require.NoError(t, f.Clear(s))
	}
}

// drained is what comes out of a frontier after a crash.
type drained struct {
	t      testing.TB
	report *report
	seen   map[crashURL]bool
	last   map[string]int       // by host and priority
	free   map[string]time.Time // when a host may be contacted again
	opened time.Time            // no host may be contacted before
}

func (d *drained) comes(l frontier.Lease, now time.Time) {
	d.t.Helper()
	u, r := urlOf(l.Entry), d.report
	require.False(d.t, r.done[u], "URL %v was done before the crash and comes again", u)
	require.False(d.t, d.seen[u], "URL %v comes twice", u)
	require.False(d.t, u.producer == deleter && !u.resting() && u.n < r.gone, "URL %v was deleted", u)
	require.Equal(d.t, strconv.Itoa(u.n), string(l.Entry.Meta))
	d.seen[u] = true

	require.False(d.t, now.Before(d.opened), "%s is contacted at once after the crash", l.Host)
	require.False(d.t, now.Before(r.rests[l.Host]), "%s is contacted at %v, must be left alone until %v", l.Host, now, r.rests[l.Host])
	require.False(d.t, now.Before(d.free[l.Host]), "%s is contacted at %v, not after %v", l.Host, now, d.free[l.Host])
	d.free[l.Host] = now.Add(crashDelay)

	if u.inOrder() && !r.bundled[u] {
		queue := fmt.Sprint(l.Host, l.Priority)
		require.Less(d.t, d.last[queue], u.n, "URLs of %s and priority %d come out of order", l.Host, l.Priority)
		d.last[queue] = u.n
	}
}

// complete requires that nothing is lost.
func (d *drained) complete() {
	d.t.Helper()
	r := d.report
	for u := range r.added {
		gone := u.producer == deleter && !u.resting() && u.n < max(r.gone, r.going)
		require.True(d.t, d.seen[u] || r.done[u] || r.leased[u] > 0 || r.unsure[u] || gone, "URL %v was admitted and is lost", u)
	}
}

// copyFolder copies a folder.
func copyFolder(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

func TestKill(t *testing.T) {
	for _, store := range []string{"plain", "small", "sync", "small-sync"} {
		t.Run(store, func(t *testing.T) {
			rnd := harness.NewRand(t)
			tries := trycount.Of(t)
			var dir string
			var r *report
			urls := 0
			for round := range *crashRounds {
				if round%8 == 0 { // a folder of its own
					dir, r = t.TempDir(), newReport()
				}
				c := startCrash(t, dir, store, r.first)
				lines := 3000 // time would depend on the machine
				if strings.HasPrefix(store, "small") {
					lines = 400 // each is slow
				}
				r.listen(t, c, 1+rnd.IntN(lines))
				r.stop(t, c)
				left := copyFolder(t, dir)
				r.clone().holds(t, left)
				require.NoError(t, os.RemoveAll(left))
				tries.Tried(1)
				urls = len(r.added)
			}
			t.Logf("%d kills; %d URLs acknowledged in the last folder, %d done, none lost, none twice", *crashRounds, urls, len(r.done))
		})
	}
}
