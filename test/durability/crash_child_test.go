// This file is the process that tests kill, stop, and cut from its power: it crawls with everything
// that writes to disk, and reports what was acknowledged.

package durability

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

var (
	crashChild = flag.String("frontier.crash-child", "", "be the process that is killed, with the store in this folder")
	crashFirst = flag.Int("frontier.crash-first", 0, "first URL number of that process")
	crashStore = flag.String("frontier.crash-store", "", "its store: plain, full, tables, sync, small or small-sync")
)

// crashDelay is how long each host of these crawls is left alone.
const crashDelay = 5 * time.Millisecond

// The hosts of a producer have its number in their names.
const (
	adders     = 2
	crashers   = 8
	deleter    = adders + crashers // its hosts are deleted now and then
	producers  = deleter + 1
	spanOfKill = 100_000 // URL numbers between two processes
)

// crashURL is URL n of a producer. Each producer adds its URLs in order.
type crashURL struct{ producer, n int }

// Traits of URLs. Some kinds are handed out in another order than that of their admission, and are
// not used to verify it.
func (u crashURL) scheduled() bool { return u.n%5 == 0 } // for the next day

func (u crashURL) revisited() bool { return u.n%7 == 0 } // the next day

func (u crashURL) failing() bool { return u.n%11 == 0 && u.producer < deleter }

func (u crashURL) resting() bool { return u.n%61 < 2 } // its host is left alone after the first contact

func (u crashURL) linked() bool { return u.n%3 == 1 } // again: it rises

func (u crashURL) inOrder() bool {
	return !u.scheduled() && !u.revisited() && !u.failing() && !u.linked()
}

func (u crashURL) host() string {
	switch {
	case u.resting():
		return fmt.Sprintf("p%d-rests%d.example", u.producer, u.n/61)
	case u.producer == deleter:
		return fmt.Sprintf("p%d-%d.gone", u.producer, u.n%31)
	}
	return fmt.Sprintf("p%d-%d.example", u.producer, u.n%31)
}

func (u crashURL) entry() frontier.Entry {
	e := frontier.Entry{URL: fmt.Sprintf("http://%s/%d/%d", u.host(), u.producer, u.n), Depth: u.n % 8, Meta: []byte(strconv.Itoa(u.n)), AsIs: true}
	if u.scheduled() {
		e.NotBefore = time.Now().Add(24*time.Hour + time.Duration(rand.Int64N(int64(time.Hour))))
	}
	return e
}

// urlOf reads a URL back.
func urlOf(e frontier.Entry) (u crashURL) {
	_, path, _ := strings.Cut(strings.TrimPrefix(e.URL, "http://"), "/")
	if _, err := fmt.Sscanf(path, "%d/%d", &u.producer, &u.n); err != nil {
		panic(err)
	}
	return u
}

// crashScopes are what the process pauses and resumes.
var crashScopes = []scope.Scope{scope.Host("p0-3.example"), scope.Host("p3-1.example"), scope.Host("p1-0.example")}

// openCrashStore opens a folder as -frontier.crash-store says.
func openCrashStore(dir, store string, log *slog.Logger) (*spill.Store, error) {
	o := spill.Options{Sync: strings.HasSuffix(store, "sync"), MemoryBudget: 64 << 20, DiskReserve: 1, Logger: log}
	if store == "tables" {
		return spilltest.OpenSmall(dir, o)
	}
	if strings.HasPrefix(store, "small") {
		return spilltest.OpenFolder(dir, o)
	}
	return spill.Open(dir, o)
}

// climber is a Riser that raises what is linked to by a level at a time.
type climber struct{}

func (climber) Priority(e frontier.Entry, _ frontier.History) int {
	return min(8, max(1, 8-e.Depth)+int(e.Weight))
}

func (climber) Found(frontier.Entry) int { return 2 + rand.IntN(7) }

func (climber) Rise(e frontier.Entry) float64 { return e.Weight + 1 }

func crashOptions(db *spill.Store, c frontier.Clock) frontier.Options {
	return frontier.Options{Spill: db, Prioritizer: climber{}, Delay: frontier.FixedDelay(crashDelay), MemoryBudget: db.Footprint() + 24<<20, Clock: c}
}

// child is the process.
type child struct {
	f    *frontier.Frontier
	mu   sync.Mutex
	next [producers]int // guarded by mu
}

// say reports something, with one write and no buffer.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// take gives out the next n numbers of a producer.
func (c *child) take(producer, n int) (first int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next[producer] += n
	return c.next[producer] - n
}

// TestCrashChild reports on its standard output what was acknowledged, URLs as
// producer and number:
//
//	a P FIRST N      added, or outlinks of a lease that is done
//	l P N            handed out
//	b P N            handed out in a bundle of several
//	d P N            done
//	s P N            done, to come again the next day
//	u P N MS         its host is left alone until then
//	x N              all URLs of the deleter below N are deleted; y N: may be
//	c I B            scope I is paused or not; q I B: may be
//	e                the store must be opened again
func TestCrashChild(t *testing.T) {
	if *crashChild == "" {
		t.Skip("only a part of tests that kill it")
	}
	db, err := openCrashStore(*crashChild, *crashStore, nil)
	require.NoError(t, err)
	f, err := frontier.Open(context.Background(), crashOptions(db, nil))
	require.NoError(t, err)
	c := &child{f: f}
	for p := range c.next {
		c.next[p] = *crashFirst
	}
	for p := range adders {
		go c.add(p)
	}
	for p := range crashers {
		go c.work(adders + p)
	}
	go c.delete()
	go c.control()
	for { // until it is killed
		_ = hook.Of(f).MoveNow(rand.IntN(2) == 0)
		time.Sleep(5 * time.Millisecond)
	}
}

// entries are the next n of a producer.
func (c *child) entries(producer, n int) (first int, es []frontier.Entry) {
	first = c.take(producer, n)
	for i := range n {
		es = append(es, crashURL{producer, first + i}.entry())
	}
	return first, es
}

func (c *child) add(producer int) {
	var later []crashURL       // scheduled, and not yet forced
	var known []frontier.Entry // some that were added
	for {
		n := 1 + rand.IntN(20)
		first, es := c.entries(producer, n)
		if _, err := c.f.Add(context.Background(), es...); err == nil {
			say("a %d %d %d", producer, first, n)
			for i, e := range es {
				if (crashURL{producer, first + i}).linked() {
					known = append(known, e)
				}
			}
			known = known[max(0, len(known)-100):]
			again := slices.Clone(known[rand.IntN(len(known)+1):])
			for i := range again {
				if rand.IntN(2) == 0 {
					again[i].Hint, again[i].Weight = true, float64(1+rand.IntN(7))
				}
			}
			_, _ = c.f.Add(context.Background(), again...)
		} else if errors.Is(err, frontier.ErrReopen) {
			say("e")
			time.Sleep(time.Hour)
		}
		if u := (crashURL{producer, first}); u.scheduled() {
			later = append(later, u)
		}
		if len(later) > 10 { // forced once: one that is done would come again
			e := later[0].entry()
			e.NotBefore, e.Force = time.Time{}, true
			_, _ = c.f.Add(context.Background(), e)
			later = later[1:]
		}
	}
}

func (c *child) work(producer int) {
	for {
		ls, err := c.f.Take(context.Background(), frontier.TakeOptions{PerHost: 1 + producer%3, Wait: time.Hour})
		if err != nil { // of a store that lacks something for now
			time.Sleep(time.Millisecond)
			continue
		}
		for _, l := range ls {
			if u := urlOf(l.Entry); len(ls) > 1 {
				say("b %d %d", u.producer, u.n)
			}
		}
		for _, l := range ls {
			c.visit(producer, l)
		}
	}
}

func (c *child) visit(producer int, l frontier.Lease) {
	u := urlOf(l.Entry)
	say("l %d %d", u.producer, u.n)
	o, word := frontier.Outcome{}, "d"
	switch {
	case u.failing() && l.Attempt <= 1 && l.History.Visits == 0:
		o.Result, o.Failure, word = frontier.Failed, frontier.FailureServer, "s"
	case u.revisited() && l.History.Visits == 0:
		o.Next, word = time.Now().Add(24*time.Hour), "s"
	case u.n%31 == 4 && rand.IntN(2) == 0:
		o.Result, word = frontier.Requeue, "s"
	default:
	}
	if u.resting() {
		o.RetryAfter = time.Duration(1+rand.IntN(5)) * time.Hour
	}
	n := rand.IntN(3)
	var first int
	first, o.Add = c.entries(producer, n)
	if c.f.Done(l, o) != nil {
		return
	}
	say("%s %d %d", word, u.producer, u.n)
	if n > 0 {
		say("a %d %d %d", producer, first, n)
	}
	if u.resting() {
		if x, err := inspect.New(c.f).Host(context.Background(), u.host()); err == nil {
			say("u %d %d %d", u.producer, u.n, x.Due.UnixMilli())
		}
	}
}

func (c *child) delete() {
	for {
		n := 1 + rand.IntN(100)
		first, es := c.entries(deleter, n)
		if _, err := c.f.Add(context.Background(), es...); err == nil {
			say("a %d %d %d", deleter, first, n)
		}
		if rand.IntN(4) == 0 {
			say("y %d", first+n)
			if _, err := c.f.Delete(context.Background(), scope.Domain("gone")); err == nil {
				say("x %d", first+n)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *child) control() {
	for {
		i, paused := rand.IntN(len(crashScopes)), rand.IntN(2)
		say("q %d %d", i, paused)
		set := c.f.Resume
		if paused == 1 {
			set = c.f.Pause
		}
		if set(crashScopes[i]) == nil {
			say("c %d %d", i, paused)
		}
		time.Sleep(time.Millisecond)
	}
}
