// This file runs one random crawl under many options, which must not change what
// comes of it: what is done with each URL, the order within a host, crawl and
// priority, what Stats say in the end. A ledger of its own judges politeness.
//
// What is done with a URL depends on it and on the number of the try alone, never
// on when it comes. So the crawls differ in nothing but the order of hosts.

package model

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// metaStep is a step of the crawl, the same under all options.
type metaStep struct {
	kind   string
	urls   []string
	after  time.Duration // from now: the time of a scheduled URL, or how much passes
	n      int           // leases to take or end at most
	host   string
	reopen bool // the frontier is closed and opened, if the options say so
}

// drawCrawl draws the steps of a crawl.
func drawCrawl(t *rapid.T) (steps []metaStep) {
	host := func() string { return fmt.Sprintf("h%d.example", rapid.IntRange(0, 5).Draw(t, "host")) }
	for range rapid.IntRange(5, 40).Draw(t, "steps") {
		s := metaStep{kind: rapid.SampledFrom([]string{"add", "add", "add", "take", "take", "end", "end", "pass", "schedule", "pause", "resume", "assign"}).Draw(t, "step")}
		s.reopen = rapid.IntRange(0, 9).Draw(t, "reopen") == 0
		s.host = host()
		switch s.kind {
		case "add":
			for range rapid.IntRange(1, 12).Draw(t, "n") {
				s.urls = append(s.urls, fmt.Sprintf("http://%s/%d", host(), rapid.IntRange(0, 40).Draw(t, "path")))
			}
		case "schedule":
			s.urls = []string{fmt.Sprintf("http://%s/s%d", s.host, rapid.IntRange(0, 40).Draw(t, "path"))}
			s.after = time.Duration(rapid.IntRange(1, 200).Draw(t, "s")) * time.Second
		case "pass":
			s.after = time.Duration(rapid.SampledFrom([]int{1, 500, 1000, 3000, 30_000}).Draw(t, "ms")) * time.Millisecond
		default:
			s.n = rapid.IntRange(1, 8).Draw(t, "n")
		}
		steps = append(steps, s)
	}
	return steps
}

// metaOptions are the options of one of the crawls.
type metaOptions struct {
	levels   int
	selector string
	quantum  int
	disk     string // "": none, "memory", "badger"
	sync     bool
	moves    string // "": never, "move": after each step, "evict": and memory keeps nothing
	reopen   string // "": never, "close", "kill"
	meta     int    // bytes of each URL: blocks have fewer of them
	budget   int64
}

func drawOptions(t *rapid.T) metaOptions {
	o := metaOptions{
		levels:   rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "levels"),
		selector: rapid.SampledFrom([]string{"strict", "random", "round robin"}).Draw(t, "selector"),
		quantum:  rapid.SampledFrom([]int{1, 2, 32}).Draw(t, "quantum"),
		disk:     rapid.SampledFrom([]string{"", "memory", "memory", "memory"}).Draw(t, "disk"),
		meta:     rapid.SampledFrom([]int{0, 100, 2000}).Draw(t, "meta"),
	}
	if o.disk == "" {
		return o
	}
	if rapid.IntRange(0, 39).Draw(t, "badger") == 0 {
		o.disk = "badger"
	}
	o.sync = rapid.Bool().Draw(t, "sync")
	o.moves = rapid.SampledFrom([]string{"", "move", "evict"}).Draw(t, "moves")
	o.reopen = rapid.SampledFrom([]string{"", "close", "kill"}).Draw(t, "reopen")
	o.budget = rapid.SampledFrom([]int64{0, 12 << 20}).Draw(t, "budget")
	if o.disk == "badger" && o.reopen == "kill" {
		o.reopen = "close"
	}
	return o
}

// metaHash is a number that depends on the URL and the try.
func metaHash(url string, attempt int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", url, attempt)
	x := h.Sum64()
	return (x ^ x>>29) * 0xBF58476D1CE4E5B9 >> 16
}

func metaPriority(url string, levels int) int { return 1 + int(metaHash(url, 0)%uint64(levels)) }

func metaCrawl(url string) uint32 { return uint32(metaHash(url, 0)>>8%2) * 5 }

// metaOutcome is what becomes of a try.
func metaOutcome(url string, attempt int) (o frontier.Outcome, drop bool) {
	x := metaHash(url, attempt)
	switch kind := x % 12; {
	case kind == 0 && attempt == 1:
		return o, true // no call ends the lease: it expires
	case kind <= 2:
		o.Result = frontier.Failed
		o.Failure = frontier.Failure(x >> 8 % 3)
	case kind == 3:
		o.Result = frontier.Gone
	case kind == 4:
		o.Result, o.Uncontacted = frontier.Denied, true
	default:
		for i := range x >> 8 % 3 {
			if strings.Count(url, "/") < 5 { // no links of links of links
				o.Add = append(o.Add, metaEntry(fmt.Sprintf("http://o%d.example/%s/%d", x>>16%40, url[7:], i), 0))
			}
		}
		o.Add = append(o.Add, metaEntry(fmt.Sprintf("http://o%d.example/", x>>24%8), 0))
	}
	if x>>32%7 == 0 {
		o.RetryAfter = time.Duration(1+x>>40%60) * time.Second
	}
	if x>>32%11 == 0 && !o.Uncontacted {
		o.CrawlDelay = time.Duration(1+x>>40%4) * time.Second
	}
	return o, false
}

func metaEntry(url string, meta int) frontier.Entry {
	return frontier.Entry{URL: url, Crawl: metaCrawl(url), Meta: []byte(strings.Repeat("m", meta))}
}

// metaResult is what must not depend on the options.
type metaResult struct {
	ends   []string  // URL, try and result of each that was ended
	stats  [5]int64  // Waiting, Scheduled, Leased, Known, Held
	counts [12]int64 // what was counted on the way; none if it was reopened
}

// metaRun is one crawl.
type metaRun struct {
	t       *rapid.T
	tb      testing.TB
	o       metaOptions
	clk     *simclock.Clock
	opts    frontier.Options
	machine *spilltest.Machine
	f       *frontier.Frontier
	leases  []frontier.Lease // to be ended
	held    map[string]bool  // paused hosts
	added   map[string]int   // when Add was given them, of those that wait at once
	latest  map[string]int   // the same of the last that came of a host, crawl and priority for the first time
	seen    map[string]bool
	again   bool // it was reopened
	contactLedger
	metaResult
}

const metaDelay = time.Second

func runMeta(tb testing.TB, t *rapid.T, steps []metaStep, o metaOptions) metaResult {
	m := &metaRun{
		t: t, tb: tb, o: o, clk: simclock.New(harness.Dawn), held: map[string]bool{},
		added: map[string]int{}, latest: map[string]int{}, seen: map[string]bool{},
		contactLedger: newContactLedger(metaDelay),
	}
	m.opts = harness.Quantum(o.quantum, frontier.Options{
		Clock: m.clk, Priorities: o.levels, Delay: frontier.FixedDelay(metaDelay), GroupDelay: frontier.FixedDelay(metaDelay),
		LeaseTime: 24 * time.Hour, Retry: frontier.Retries(3, time.Second), Quarantine: frontier.Quarantine{Disabled: true},
		Backoff:     frontier.Backoff{Jitter: 1e-9},
		Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return metaPriority(e.URL, o.levels) }),
		Selector: map[string]func() frontier.Selector{
			"strict": selector.Strict, "random": func() frontier.Selector { return selector.BiasedRandom(1) }, "round robin": selector.RoundRobin,
		}[o.selector](),
	})
	switch so := (spill.Options{Sync: o.sync}); o.disk {
	case "memory":
		m.machine = spilltest.OpenMemory(tb, so)
		m.opts.Spill = m.machine.Store
	case "badger":
		s, err := spill.Open(tb.TempDir(), so)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		m.opts.Spill = s
	}
	if o.budget > 0 {
		m.opts.MemoryBudget = o.budget + m.opts.Spill.Footprint()
	}
	m.open()
	for _, s := range steps {
		m.step(s)
	}
	for h := range m.held {
		require.NoError(t, m.f.Resume(scope.Host(h)))
	}
	clear(m.held)
	m.drain()
	x := m.f.Stats()
	m.stats = [5]int64{x.Waiting, x.Scheduled, x.Leased, x.Known, x.Held}
	if !m.again {
		m.counts = [12]int64{x.Added, x.Duplicates, x.HandedOut, x.Retried, x.GivenUp, x.Expired, x.Done[0], x.Done[1], x.Done[2], x.Done[3], x.Done[4], x.Done[5]}
	}
	require.NoError(t, m.f.Check())
	require.NoError(t, m.f.Close())
	slices.Sort(m.ends)
	return m.metaResult
}

func (m *metaRun) open() {
	f, err := frontier.Open(context.Background(), m.opts)
	require.NoError(m.t, err)
	m.f = f
}

func (m *metaRun) step(s metaStep) {
	t := m.t
	switch s.kind {
	case "add", "schedule":
		var entries []frontier.Entry
		for _, u := range s.urls {
			e := metaEntry(u, m.o.meta)
			if s.kind == "schedule" {
				e.NotBefore = m.clk.Now().Add(s.after)
			} else if m.added[u] == 0 {
				m.added[u] = len(m.added) + 1
			}
			entries = append(entries, e)
		}
		_, err := m.f.Add(context.Background(), entries...)
		require.NoError(t, err)
	case "take":
		for range s.n {
			if !m.take() {
				break
			}
		}
	case "end":
		for range min(s.n, len(m.leases)) {
			m.end()
		}
	case "pass":
		m.pass(m.clk.Now().Add(s.after))
	case "pause":
		require.NoError(t, m.f.Pause(scope.Host(s.host)))
		m.held[s.host] = true
	case "resume":
		require.NoError(t, m.f.Resume(scope.Host(s.host)))
		delete(m.held, s.host)
	case "assign":
		m.assign(s.host, fmt.Sprintf("g%d", s.n%2))
	}
	if m.o.moves != "" {
		require.NoError(t, hook.Of(m.f).MoveNow(m.o.moves == "evict"))
	}
	if s.reopen {
		m.reopen()
	}
}

// assign puts a host into a group permanently, when nothing is leased.
func (m *metaRun) assign(host, group string) {
	if m.groups[host] != "" {
		return
	}
	for len(m.leases) > 0 {
		m.end()
	}
	m.pass(m.clk.Now().Add(metaDrop))
	m.expire(m.clk.Now()) // as of hosts that belong to no group
	require.NoError(m.t, m.f.Assign(host, group))
	m.groups[host] = group
}

// pass lets time pass until at.
func (m *metaRun) pass(at time.Time) {
	m.clk.Set(at)
	hook.Of(m.f).ReadTimed()
	m.f.Stats()
	_, err := m.f.Add(context.Background()) // what is on its way arrives
	require.NoError(m.t, err)
}

// take takes a lease if one may be had now.
func (m *metaRun) take() bool {
	l, _, err := m.f.TryNext()
	if err != nil {
		require.True(m.t, errors.Is(err, frontier.ErrNotDue) || errors.Is(err, frontier.ErrExhausted) || errors.As(err, new(*frontier.HeldError)), "%v", err)
		return false
	}
	m.lease(m.t, l, m.clk.Now())
	require.False(m.t, m.held[l.Host], "%s is paused", l.Host)
	u := l.Entry.URL
	if m.added[u] > 0 {
		require.Len(m.t, l.Entry.Meta, m.o.meta)
	}
	require.Equal(m.t, metaPriority(u, m.o.levels), l.Priority)
	if at := m.added[u]; at > 0 && !m.seen[u] {
		queue := fmt.Sprint(l.Host, l.Entry.Crawl, l.Priority)
		require.Greater(m.t, at, m.latest[queue], "%s was added before", u)
		m.latest[queue], m.seen[u] = at, true
	}
	m.leases = append(m.leases, l)
	return true
}

// metaDrop is the time after which a lease expires that is not ended.
const metaDrop = time.Second

// end ends the oldest lease, or sees to it that it expires.
func (m *metaRun) end() {
	l := m.leases[0]
	m.leases = m.leases[1:]
	o, drop := metaOutcome(l.Entry.URL, l.Attempt)
	if drop {
		require.NoError(m.t, m.f.Extend(&l, metaDrop))
		m.out[l.Host] = l.Deadline
		return
	}
	require.NoError(m.t, m.f.Done(l, o))
	m.done(l.Host, m.clk.Now(), o)
	m.ends = append(m.ends, fmt.Sprint(l.Entry.URL, " ", l.Attempt, " ", o.Result))
}

// reopen ends the frontier, with leases out, and opens it again.
func (m *metaRun) reopen() {
	if m.o.reopen == "" {
		return
	}
	next := m.opts.Spill
	if m.o.reopen == "kill" {
		m.machine = m.machine.Kill(m.tb)
		next = m.machine.Store
	}
	require.NoError(m.t, m.f.Check())
	require.NoError(m.t, m.f.Close())
	m.reopened(m.clk.Now(), m.o.reopen == "kill")
	m.opts.Spill, m.leases, m.again = next, nil, true
	m.open()
}

// drain ends the crawl.
func (m *metaRun) drain() {
	for {
		for m.take() {
		}
		if len(m.leases) > 0 {
			for len(m.leases) > 0 {
				m.end()
			}
			continue
		}
		_, at, err := m.f.TryNext()
		if errors.Is(err, frontier.ErrExhausted) {
			return
		}
		require.ErrorIs(m.t, err, frontier.ErrNotDue)
		require.True(m.t, at.After(m.clk.Now()), "nothing is left to wait for")
		m.pass(at)
	}
}

// contactLedger knows from when on each host, and each group, may be contacted.
type contactLedger struct {
	delay  time.Duration
	out    map[string]time.Time // hosts leased, until then at most
	due    map[string]time.Time // hosts
	crawl  map[string]time.Duration
	groups map[string]string    // of hosts
	free   map[string]time.Time // groups
	hold   time.Time
}

func newContactLedger(delay time.Duration) contactLedger {
	return contactLedger{
		delay: delay, out: map[string]time.Time{}, due: map[string]time.Time{}, crawl: map[string]time.Duration{},
		groups: map[string]string{}, free: map[string]time.Time{},
	}
}

// expire ends the leases whose time has passed.
func (g *contactLedger) expire(now time.Time) {
	for h, until := range g.out {
		if !until.After(now) {
			g.contacted(h, until)
		}
	}
}

// lease requires that the host of a lease may be contacted now.
func (g *contactLedger) lease(t require.TestingT, l frontier.Lease, now time.Time) {
	g.expire(now)
	_, leased := g.out[l.Host]
	require.False(t, leased, "%s is leased", l.Host)
	require.False(t, g.due[l.Host].After(now), "%s is contacted %v early", l.Host, g.due[l.Host].Sub(now))
	require.False(t, g.hold.After(now), "%s is contacted %v early after the crash", l.Host, g.hold.Sub(now))
	if group := g.groups[l.Host]; group != "" {
		require.False(t, g.free[group].After(now), "%s is contacted %v early", group, g.free[group].Sub(now))
		for h := range g.out {
			require.NotEqual(t, group, g.groups[h], "%s is leased", group)
		}
	}
	g.out[l.Host] = l.Deadline
}

func (g *contactLedger) done(host string, now time.Time, o frontier.Outcome) {
	if o.CrawlDelay > 0 {
		g.crawl[host] = o.CrawlDelay
	}
	if delete(g.out, host); !o.Uncontacted {
		g.contacted(host, now)
	}
	g.due[host] = later(g.due[host], now.Add(o.RetryAfter))
}

func (g *contactLedger) contacted(host string, end time.Time) {
	delete(g.out, host)
	g.due[host] = later(g.due[host], end.Add(max(g.delay, g.crawl[host])))
	if group := g.groups[host]; group != "" {
		g.free[group] = later(g.free[group], end.Add(g.delay))
	}
}

// reopened notes that a frontier was closed or killed, and opened again.
func (g *contactLedger) reopened(now time.Time, killed bool) {
	for h, until := range g.out {
		if until.After(now) {
			until = now
		}
		g.contacted(h, until)
	}
	if !killed {
		return
	}
	g.hold = now.Add(g.delay)
	for h := range g.crawl {
		g.contacted(h, now)
	}
}

func TestMetamorphic(t *testing.T) {
	n := trycount.Of(t)
	rapid.Check(t, func(rt *rapid.T) {
		steps := drawCrawl(rt)
		want := runMeta(t, rt, steps, metaOptions{levels: 1, selector: "strict", quantum: 32})
		for range 3 {
			o := drawOptions(rt)
			got := runMeta(t, rt, steps, o)
			require.Equal(rt, want.ends, got.ends, "%+v", o)
			require.Equal(rt, want.stats, got.stats, "%+v", o)
			if o.reopen == "" {
				require.Equal(rt, want.counts, got.counts, "%+v", o)
			}
			n.Tried(1)
		}
	})
}
