// This file closes frontiers on real stores at random moments, during every kind of call and
// background work, while the disk is slow, fails, or hangs.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

var closeRounds = flag.Int("frontier.closes", 4, "how often a frontier is closed beside everything")

// moody is a Spill whose calls take their time, fail, or wait for a gate.
type moody struct {
	gatedSpill
	mu    sync.Mutex
	rand  *rand.Rand    // guarded by mu
	slow  time.Duration // at most this long
	fails float64       // share of the calls
}

func (s *moody) enter(string) error {
	s.mu.Lock()
	d, fails := time.Duration(0), s.rand.Float64() < s.fails
	if s.slow > 0 {
		d = time.Duration(s.rand.Int64N(int64(s.slow)))
	}
	s.mu.Unlock()
	time.Sleep(d)
	if fails {
		return harness.ErrDisk
	}
	return nil
}

// heal ends all faults of the disk.
func (s *moody) heal() {
	s.mu.Lock()
	s.slow, s.fails = 0, 0
	s.mu.Unlock()
	s.open()
}

// bustle is a frontier that is used in every way, and what its users know of the URLs.
type bustle struct {
	t    *testing.T
	f    *frontier.Frontier
	n    *trycount.Counter
	stop chan struct{}
	all  sync.WaitGroup

	moves sync.WaitGroup // of the mover, which is not waited for

	mu     sync.Mutex
	in     map[string]bool // admitted and not done; guarded by mu
	done   map[string]bool // guarded by mu
	unsure map[string]bool // whether they are done; guarded by mu
	next   int             // guarded by mu
}

// fresh returns entries that were never added.
func (c *bustle) fresh(r *rand.Rand, n int) []frontier.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []frontier.Entry
	for range n {
		e := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", r.IntN(30), c.next), Depth: r.IntN(4)}
		if r.IntN(4) == 0 {
			e.NotBefore = time.Now().Add(time.Duration(r.IntN(int(time.Hour))))
		}
		c.next++
		out = append(out, e)
	}
	return out
}

// admitted notes what an Add said of entries.
func (c *bustle) admitted(es []frontier.Entry, err error) {
	if err != nil {
		return // they may have been, or not
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range es {
		if !c.done[e.URL] && !c.unsure[e.URL] { // else it was leased before Add returned
			c.in[e.URL] = true
		}
	}
}

// ended notes what a Done said of a URL that was visited.
func (c *bustle) ended(url string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, frontier.ErrUnsettled):
		delete(c.in, url)
		c.unsure[url] = true
	case err == nil || outlinksOnly(err):
		delete(c.in, url)
		c.done[url] = true
	}
}

// outlinksOnly reports whether err is about outlinks alone, so that the URL is done.
func outlinksOnly(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !outlinksOnly(err) })
	}
	_, ok := err.(*frontier.EntryError)
	return ok || strings.HasPrefix(err.Error(), "outlinks: ")
}

// goes runs fn again and again until the frontier is closed.
func (c *bustle) goes(seed uint64, fn func(*rand.Rand) error) {
	c.all.Go(func() {
		r := rand.New(rand.NewPCG(seed, 1))
		for {
			select {
			case <-c.stop:
				return
			default:
			}
			if err := fn(r); errors.Is(err, frontier.ErrClosed) {
				return
			}
		}
	})
}

// works takes leases and ends them, one way or another.
func (c *bustle) works(r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(20))*time.Millisecond)
	defer cancel()
	l, err := c.f.Next(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.done[l.Entry.URL] {
		c.n.Duplicated(1)
	}
	c.mu.Unlock()
	if strings.HasPrefix(l.Host, "dead") {
		return c.f.Done(l, harness.Failing(frontier.FailureConnect))
	}
	switch r.IntN(8) {
	case 0:
		return nil // its lease expires
	case 1:
		_, err := c.f.HandBack(l)
		return err
	case 2:
		return c.f.Done(l, frontier.Outcome{Result: frontier.Requeue})
	}
	var o frontier.Outcome
	if r.IntN(2) == 0 {
		o.Add = c.fresh(r, 1+r.IntN(5))
	}
	if r.IntN(4) == 0 {
		o.Add = append(o.Add, frontier.Entry{URL: "http://forced.example/", Force: true})
	}
	err = c.f.Done(l, o)
	if l.Host != "forced.example" {
		c.ended(l.Entry.URL, err)
	}
	return err
}

// begins starts all activities.
func (c *bustle) begins(r *rand.Rand) {
	bg := context.Background()
	for range 6 {
		c.goes(r.Uint64(), c.works)
	}
	for range 2 {
		c.goes(r.Uint64(), func(r *rand.Rand) error {
			es := c.fresh(r, 1+r.IntN(40))
			_, err := c.f.Add(bg, es...)
			c.admitted(es, err)
			return err
		})
	}
	other := []func(*rand.Rand) error{
		func(r *rand.Rand) error {
			es := []frontier.Entry{{URL: "http://forced.example/", Force: true}, {URL: fmt.Sprintf("http://h%d.example/%d", r.IntN(30), r.IntN(500)), Hint: true, Weight: 3}}
			_, err := c.f.Add(bg, es...)
			return err
		},
		func(*rand.Rand) error {
			if _, err := c.f.Add(bg, frontier.Entry{URL: "http://gone.example/1"}); err != nil {
				return err
			}
			_, err := c.f.Delete(bg, scope.Host("gone.example"))
			return err
		},
		func(r *rand.Rand) error {
			s := scope.Host(fmt.Sprintf("h%d.example", r.IntN(30)))
			return errors.Join(c.f.Pause(s), c.f.Resume(s))
		},
		func(r *rand.Rand) error {
			ctx, cancel := context.WithTimeout(bg, 3*time.Millisecond)
			defer cancel()
			l, err := c.f.Contact(ctx, fmt.Sprintf("h%d.example", r.IntN(60)))
			if err == nil {
				err = c.f.Done(l, frontier.Outcome{CrawlDelay: time.Duration(r.IntN(3)) * time.Millisecond})
			}
			return err
		},
		func(r *rand.Rand) error {
			var es []frontier.Entry
			for range 40 {
				es = append(es, frontier.Entry{URL: fmt.Sprintf("http://dead%d.example/%d", r.IntN(3), r.IntN(1_000_000))})
			}
			_, err := c.f.Add(bg, es...)
			return err
		},
		func(*rand.Rand) error { return transfer.Export(bg, c.f, io.Discard, transfer.ExportOptions{}) },
		func(r *rand.Rand) error {
			_, err := transfer.Import(bg, c.f, bytes.NewReader(nil), transfer.ImportOptions{})
			return err
		},
		func(r *rand.Rand) error {
			_, err := inspect.New(c.f).Status(bg, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", r.IntN(30), r.IntN(500))})
			return err
		},
		func(*rand.Rand) error {
			for _, err := range inspect.New(c.f).URLs(bg, scope.All(), "") {
				if err != nil {
					return err
				}
			}
			_, err := inspect.New(c.f).Upcoming(bg, 5, true)
			return err
		},
		func(r *rand.Rand) error {
			c.f.Stats()
			time.Sleep(time.Millisecond)
			_, err := inspect.New(c.f).Host(bg, fmt.Sprintf("h%d.example", r.IntN(60)))
			return err
		},
	}
	for _, fn := range other {
		c.goes(r.Uint64(), fn)
	}
	c.moves.Go(func() {
		for !errors.Is(hook.Of(c.f).MoveNow(true), frontier.ErrClosed) {
			time.Sleep(time.Millisecond)
		}
	})
}

// within waits for fn, but not for ever.
func (c *bustle) within(what string, fn func()) {
	over := make(chan struct{})
	go func() { defer close(over); fn() }()
	select {
	case <-over:
	case <-time.After(time.Minute):
		panic(what + " hangs") // with all goroutines
	}
}

// Close returns, and so does every concurrent call, whatever the disk does. Afterwards everything
// acknowledged is there, and nothing that was done.
func TestCloseBesideEverything(t *testing.T) {
	r, n := harness.NewRand(t), trycount.Of(t)
	for range *closeRounds {
		closeBesideEverything(t, rand.New(rand.NewPCG(r.Uint64(), 5)), n)
	}
}

func closeBesideEverything(t *testing.T, r *rand.Rand, n *trycount.Counter) {
	dir := t.TempDir()
	store, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
	require.NoError(t, err)
	s := &moody{rand: rand.New(rand.NewPCG(r.Uint64(), 6))}
	s.Spill, s.mood = store, s.enter
	o := frontier.Options{
		Spill: s, Delay: frontier.FixedDelay(0), HostConcurrency: 2, KeepOpen: true, LeaseTime: 20 * time.Millisecond,
		Retry:      frontier.Retries(100_000, time.Millisecond),
		Backoff:    frontier.Backoff{Disabled: true},
		Quarantine: frontier.Quarantine{After: 2, Probe: time.Millisecond, MaxProbe: time.Millisecond, Probes: 1}, // of dead hosts only
		OnEvent:    func(event.Event) {},
	}
	f, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	c := &bustle{t: t, f: f, n: n, stop: make(chan struct{}), in: map[string]bool{}, done: map[string]bool{}, unsure: map[string]bool{}}
	es := c.fresh(r, 300)
	_, err = f.Add(t.Context(), es...)
	require.NoError(t, err)
	c.admitted(es, nil)
	mood := r.IntN(4)
	s.mu.Lock()
	if mood&1 != 0 {
		s.slow = time.Duration(1+r.IntN(4)) * time.Millisecond
	}
	if mood&2 != 0 {
		s.fails = 0.02
	}
	s.mu.Unlock()
	c.begins(r)
	time.Sleep(time.Duration(r.IntN(80)) * time.Millisecond)
	if stuck := r.IntN(3) == 0; stuck {
		calls := []string{"Commit", "Pack", "PackMarks", "Checkpoint", "Load", "LoadTimed", "Known", "Row", "Snapshot"}
		s.hold(calls[r.IntN(len(calls))], r.IntN(3))
		time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
		c.within("CloseContext", func() {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			_ = f.CloseContext(ctx)
		})
		close(c.stop)
		c.within("a call on a stuck disk", c.all.Wait)
		s.heal()
		c.within("Close", func() { _ = f.Close() })
	} else {
		c.within("Close", func() { _ = f.Close() })
		close(c.stop)
		c.within("a call", c.all.Wait)
	}
	s.heal()
	c.within("a round of moving", c.moves.Wait)
	n.Tried(1)
	o.Spill, o.LeaseTime = store, 0
	again, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, again.Check())
	for u := range c.in {
		if !isThere(t, again, u) {
			n.Lost(1)
			t.Errorf("%s was admitted and is lost", u)
		}
	}
	for u := range c.done {
		if isThere(t, again, u) {
			n.Duplicated(1)
			t.Errorf("%s was done and waits again", u)
		}
	}
	require.NoError(t, again.Close())
	require.NoError(t, store.Close())
}

func isThere(t *testing.T, f *frontier.Frontier, url string) bool {
	s, err := inspect.New(f).Status(t.Context(), frontier.Entry{URL: url})
	require.NoError(t, err)
	return s.State != inspect.URLKnown && s.State != inspect.URLUnknown
}
