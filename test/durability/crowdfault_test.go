// This file lets calls to a store fail, or take seconds, while many goroutines wait
// for it.

package durability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crowd is goroutines that add, fetch, contact, control, look and move, and repeat
// what fails. It keeps books of what was acknowledged.
type crowd struct {
	*testing.T
	f *frontier.Frontier
	n *trycount.Counter

	mu     sync.Mutex
	rand   *rand.Rand      // guarded by mu
	added  map[string]bool // guarded by mu; acknowledged
	done   map[string]bool // guarded by mu; its Done has returned
	adding int             // guarded by mu; goroutines that still add
}

const (
	crowdAdders  = 2
	crowdFetches = 4
	crowdHosts   = 5
)

func (c *crowd) intN(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}

// again calls fn until it succeeds. It may fail once for each fault.
func (c *crowd) again(fn func() error) {
	for range 3 {
		err := fn()
		if err == nil {
			return
		}
		assert.ErrorIs(c, err, harness.ErrDisk)
	}
	c.Error("it fails again and again")
}

func (c *crowd) add(entries []frontier.Entry) {
	c.again(func() error { _, err := c.f.Add(context.Background(), entries...); return err })
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		c.added[e.URL] = true
	}
}

func (c *crowd) adds(id int) {
	for i := range 5 {
		time.Sleep(time.Duration(c.intN(20)) * time.Millisecond)
		var entries []frontier.Entry
		for k := range 1 + c.intN(3) {
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d/%d", c.intN(crowdHosts), id, i, k)})
		}
		if c.intN(4) == 0 {
			entries[0].NotBefore = time.Now().Add(time.Second)
		}
		c.add(entries)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.adding--
}

// fetches takes URLs until there are no more.
func (c *crowd) fetches() {
	for {
		l, err := c.f.Next(context.Background())
		c.mu.Lock()
		over := c.adding == 0
		c.mu.Unlock()
		switch {
		case errors.Is(err, frontier.ErrExhausted) && over:
			return
		case errors.Is(err, frontier.ErrExhausted):
			time.Sleep(time.Millisecond)
			continue
		case err != nil:
			assert.ErrorIs(c, err, harness.ErrDisk)
			continue
		}
		c.visits(l)
	}
}

func (c *crowd) visits(l frontier.Lease) {
	c.mu.Lock()
	if c.done[l.Entry.URL] {
		c.n.Duplicated(1)
		c.Errorf("%s came after its Done", l.Entry.URL)
	}
	c.mu.Unlock()
	time.Sleep(time.Duration(c.intN(3)) * time.Millisecond)
	var o frontier.Outcome
	if n := strings.Count(l.Entry.URL, "/"); n < 7 {
		o.Add = []frontier.Entry{{URL: l.Entry.URL + "/x"}}
	}
	err := c.f.Done(l, o)
	switch {
	case err == nil:
	case errors.Is(err, frontier.ErrNotLeased): // the store was so slow that the lease ended: it comes again
		return
	case !assert.ErrorIs(c, err, harness.ErrDisk), !strings.Contains(err.Error(), "outlinks"): // it comes again
		return
	default:
		c.add(o.Add)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[l.Entry.URL] = true
	for _, e := range o.Add {
		c.added[e.URL] = true
	}
}

// contacts waits for a host's turn among its URLs.
func (c *crowd) contacts() {
	for range 4 {
		time.Sleep(time.Duration(c.intN(10)) * time.Millisecond)
		c.again(func() error {
			l, err := c.f.Contact(context.Background(), fmt.Sprintf("h%d.example", c.intN(crowdHosts+2)))
			if err != nil {
				return err
			}
			if err := c.f.Done(l, frontier.Outcome{CrawlDelay: 2 * time.Millisecond}); !errors.Is(err, frontier.ErrNotLeased) {
				return err
			}
			return nil
		})
	}
}

// looks reads and controls.
func (c *crowd) looks() {
	ctx := context.Background()
	for range 3 {
		time.Sleep(time.Duration(c.intN(10)) * time.Millisecond)
		h := fmt.Sprintf("h%d.example", c.intN(crowdHosts))
		c.again(func() error { return c.f.Pause(scope.Host(h)) })
		c.again(func() error {
			_, err := inspect.New(c.f).Status(ctx, frontier.Entry{URL: "http://" + h + "/0/0/0"})
			return err
		})
		c.again(func() error {
			_, err := inspect.New(c.f).Host(ctx, h)
			if errors.Is(err, frontier.ErrUnknownHost) {
				return nil
			}
			return err
		})
		c.again(func() error { return c.f.Resume(scope.Host(h)) })
	}
}

func (c *crowd) moves() {
	for range 4 {
		time.Sleep(time.Duration(c.intN(15)) * time.Millisecond)
		for range 3 { // a commit that failed meanwhile spoils a round
			if hook.Of(c.f).MoveNow(true) == nil {
				break
			}
		}
	}
}

// crawls lets everybody at a store until all is done, and opens it again in the end.
func (c *crowd) crawls(s storage.Spill, heal func()) {
	o := frontier.Options{
		Spill: s, Delay: frontier.FixedDelay(2 * time.Millisecond), LeaseTime: 2 * time.Second, Retry: frontier.Retries(1000, time.Millisecond),
	}
	open := func() (err error) { c.f, err = frontier.Open(context.Background(), o); return err }
	c.again(open)
	require.NotNil(c, c.f)
	c.adding = crowdAdders
	var all sync.WaitGroup
	for id := range crowdAdders {
		all.Go(func() { c.adds(id) })
	}
	for range crowdFetches {
		all.Go(c.fetches)
	}
	all.Go(c.contacts)
	all.Go(c.looks)
	all.Go(c.moves)
	all.Wait()
	require.NoError(c, c.f.Check())
	if err := c.f.Close(); err != nil {
		require.ErrorIs(c, err, harness.ErrDisk)
	}
	_, err := c.f.Add(context.Background(), frontier.Entry{URL: "http://late.example/"})
	require.ErrorIs(c, err, frontier.ErrClosed)
	heal()
	require.NoError(c, open())
	c.fetches() // what came of calls that failed
	harness.Ended(c.T, c.f)
	for u := range c.added {
		if !c.done[u] {
			c.n.Lost(1)
			c.Errorf("%s is lost", u)
		}
	}
}

func newCrowd(t *testing.T, n *trycount.Counter, seed uint64) *crowd {
	return &crowd{T: t, n: n, rand: rand.New(rand.NewPCG(seed, 4)), added: map[string]bool{}, done: map[string]bool{}}
}

// Many calls wait while one call after the other to the disk, or to any Spill, fails or takes
// longer than a lease: the affected callers get the error, all others continue, and no call waits
// forever.
func TestFaultsMeetACrowd(t *testing.T) {
	r, n := harness.NewRand(t), trycount.Of(t)
	for _, point := range []spilltest.Point{spilltest.Write, spilltest.Sync, spilltest.Read, spilltest.Open} {
		t.Run(fmt.Sprintf("disk/point=%d", point), func(t *testing.T) {
			seed := r.Uint64()
			fails(t, n, []fault{plain}, func(t *testing.T, i int, w fault) bool {
				m := spilltest.OpenMemory(t, spill.Options{})
				before := m.Faults.Calls(point)
				m.Faults.FailNth(point, i, w.err)
				reached := false
				newCrowd(t, n, seed).crawls(m.Store, func() {
					reached = m.Faults.Calls(point)-before >= i
					m.Faults.Heal()
				})
				return reached
			})
		})
	}
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill/late=%t", late), func(t *testing.T) {
			seed := r.Uint64()
			fails(t, n, []fault{plain, hesitant}, func(t *testing.T, i int, w fault) bool {
				s := &brittle{Spill: spilltest.OpenMemory(t, spill.Options{}).Store}
				x := trouble{err: w.err, late: late}
				if w.err == nil {
					x.wait = slowest
				}
				s.breaks(i, x)
				reached := false
				newCrowd(t, n, seed).crawls(s, func() {
					reached = s.broke() != ""
					s.breaks(0, trouble{})
				})
				return reached
			})
		})
	}
}
