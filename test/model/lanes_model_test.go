// This file drives a frontier whose hosts have several lanes, and whose groups have several slots,
// in parallel with a naive model of when a contact is allowed.

package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
)

// lanesModel is a set of lanes: how many, how many are in use, and what keeps the
// others from being used.
type lanesModel struct {
	n     int
	used  int
	hold  time.Time
	until []time.Time
	vague bool // their number changed: it may keep a longer distance than it must
}

func (l *lanesModel) free(now time.Time) bool {
	n := l.used
	for _, t := range l.until {
		if t.After(now) {
			n++
		}
	}
	return !l.hold.After(now) && n < l.n
}

// leave notes that a lane is left alone.
func (l *lanesModel) leave(t time.Time) { l.until = append(l.until, t) }

func (l *lanesModel) resize(n int) {
	l.vague = l.vague || n != l.n
	l.n = n
}

// settle forgets that it is vague when nothing holds any lane.
func (l *lanesModel) settle(now time.Time) {
	l.until = slices.DeleteFunc(l.until, func(t time.Time) bool { return !t.After(now) })
	if l.used == 0 && len(l.until) == 0 && !l.hold.After(now) {
		l.vague = false
	}
}

type laneHost struct {
	lanesModel
	name    string
	group   string
	saved   string // group that a crash does not forget
	rested  bool   // it had nothing to do when last looked at
	told    bool   // it was assigned to its group, or to none
	crawl   time.Duration
	waiting int
}

type laneGroup struct {
	lanesModel
	delay time.Duration
	crash time.Time // it is left alone until then because of a crash
}

func (g *laneGroup) free(now time.Time) bool { return !g.crash.After(now) && g.lanesModel.free(now) }

type laneLease struct {
	frontier.Lease
	host       *laneHost
	group, old string
	both       bool // it holds a slot of old as well
	bundle     *laneBundle
}

// laneBundle is leases that share a lane and a slot. One lease alone is a bundle, too.
type laneBundle struct {
	members    []*laneLease
	shared     bool      // it began with several
	lane, slot time.Time // what the lane and the slot keep once they are free
}

type lanesWorld struct {
	clock   *simclock.Clock
	f       *frontier.Frontier
	machine *spilltest.Machine // nil: in memory
	opts    frontier.Options
	crashed time.Time // when it was last opened after a crash; zero: never
	hosts   []*laneHost
	groups  map[string]*laneGroup
	leases  []*laneLease // the latest first
	urls    int
}

const (
	laneDelay      = time.Second
	groupDelay     = 2 * time.Second
	longGroupDelay = 3 * time.Second
)

func (m *lanesWorld) now() time.Time { return m.clock.Now() }

func (m *lanesWorld) group(name string) *laneGroup {
	if m.groups[name] == nil {
		m.groups[name] = &laneGroup{lanesModel: lanesModel{n: 1}, delay: groupDelay}
		m.groups[name].crash = m.crashed.Add(groupDelay)
	}
	return m.groups[name]
}

func (m *lanesWorld) drawHost(t *rapid.T) *laneHost {
	return rapid.SampledFrom(m.hosts).Draw(t, "host")
}

func (m *lanesWorld) drawGroup(t *rapid.T) string {
	return rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group")
}

func (m *lanesWorld) drawLease(t *rapid.T) *laneLease {
	if len(m.leases) == 0 {
		t.Skip("no lease")
	}
	return rapid.SampledFrom(m.leases).Draw(t, "lease")
}

func (m *lanesWorld) Add(t *rapid.T) {
	h := m.drawHost(t)
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		m.urls++
		n, err := m.f.Add(context.Background(), frontier.Entry{
			URL: fmt.Sprintf("http://%s/%d", h.name, m.urls), Depth: rapid.IntRange(0, 2).Draw(t, "depth"),
		})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		h.waiting++
	}
}

// settle lets what is vague become clear.
func (m *lanesWorld) settle() {
	for _, h := range m.hosts {
		h.settle(m.now())
	}
	for _, g := range m.groups {
		if !m.crashed.Add(longGroupDelay).After(m.now()) {
			g.settle(m.now())
		}
	}
}

func (m *lanesWorld) Next(t *rapid.T) {
	m.settle()
	l, at, err := m.f.TryNext()
	if m.none(t, at, err, "") {
		return
	}
	m.handedOut(t, l, &laneBundle{})
}

// Take takes leases of several hosts, or a bundle, of any host or of one.
func (m *lanesWorld) Take(t *rapid.T) {
	m.settle()
	o := frontier.TakeOptions{Hosts: rapid.IntRange(1, 3).Draw(t, "hosts")}
	if rapid.Bool().Draw(t, "bundle") {
		o.Hosts, o.PerHost = 1, rapid.IntRange(1, 4).Draw(t, "URLs")
	}
	if rapid.IntRange(0, 2).Draw(t, "one") == 0 {
		o.Host = m.drawHost(t).name
	}
	ls, err := m.f.Take(context.Background(), o)
	var notDue *frontier.NotDueError
	errors.As(err, &notDue)
	if err != nil {
		at := time.Time{}
		if notDue != nil {
			at = notDue.Next
		}
		require.True(t, m.none(t, at, err, o.Host), "%v", err)
		return
	}
	b := &laneBundle{}
	for _, l := range ls {
		require.True(t, o.Host == "" || l.Host == o.Host)
		require.Equal(t, len(ls) > 1 && o.PerHost > 1, l.Gap > 0)
		m.handedOut(t, l, b)
		if o.PerHost <= 1 {
			b = &laneBundle{}
		}
	}
}

// none reports whether there was no lease, of a host if one is named, and requires that
// there was none to be had.
func (m *lanesWorld) none(t *rapid.T, at time.Time, err error, host string) bool {
	if errors.Is(err, frontier.ErrExhausted) || errors.Is(err, frontier.ErrNotDue) {
		require.True(t, at.IsZero() || at.After(m.now()))
		for _, h := range m.hosts {
			free := h.waiting > 0 && h.free(m.now()) && !h.vague && (host == "" || host == h.name && h.group == "")
			if g := m.groups[h.group]; g != nil {
				free = free && g.free(m.now()) && !g.vague
			}
			require.False(t, free, "%s may be contacted, and nothing was handed out", h.name)
		}
		return true
	}
	require.NoError(t, err)
	return false
}

// handedOut notes a lease, which is the first of its bundle or one more.
func (m *lanesWorld) handedOut(t *rapid.T, l frontier.Lease, b *laneBundle) {
	x := &laneLease{Lease: l, bundle: b}
	m.leases = slices.Insert(m.leases, 0, x)
	b.members = append(b.members, x)
	if first := b.members[0]; first != x {
		b.shared = true
		x.host, x.group = first.host, first.group
		require.Equal(t, []string{first.Host, first.Group}, []string{l.Host, l.Group})
		x.host.waiting--
		return
	}
	h := m.hosts[slices.IndexFunc(m.hosts, func(h *laneHost) bool { return h.name == l.Host })]
	require.True(t, h.free(m.now()), "%s has %d of %d lanes in use, until %v", h.name, h.used, h.n, h.until)
	require.Equal(t, h.group, l.Group)
	h.waiting--
	h.used++
	if g := m.groups[h.group]; g != nil {
		require.True(t, g.free(m.now()), "%s has %d of %d slots in use, until %v", h.group, g.used, g.n, g.until)
		g.used++
	}
	x.host, x.group = h, h.group
}

func (m *lanesWorld) end(l *laneLease, contacted bool) {
	m.leases = slices.DeleteFunc(m.leases, func(x *laneLease) bool { return x == l })
	b := l.bundle
	b.members = slices.DeleteFunc(b.members, func(x *laneLease) bool { return x == l })
	last := len(b.members) == 0
	leave := func(name string) {
		if contacted && name != "" {
			m.groups[name].leave(m.now().Add(m.groups[name].delay))
		}
	}
	free := func(g *laneGroup) {
		var at time.Time
		if contacted {
			at = m.now().Add(g.delay)
		}
		if b.shared {
			b.slot = later(b.slot, at)
			at = b.slot
		}
		if last {
			g.used--
			g.leave(at)
		}
	}
	if g := m.groups[l.group]; g != nil {
		free(g)
	}
	if g := l.host.group; g != l.group && g != l.old {
		leave(g)
	}
	if l.both {
		free(m.groups[l.old])
	} else {
		leave(l.old)
	}
	l.host.saved = l.host.group
	if contacted {
		b.lane = later(b.lane, m.now().Add(laneDelay))
		if l.host.crawl > 0 {
			l.host.hold = later(l.host.hold, m.now().Add(l.host.crawl))
		}
	}
	if last {
		l.host.used--
		l.host.leave(b.lane)
	}
}

func (m *lanesWorld) Done(t *rapid.T) {
	l := m.drawLease(t)
	o := m.drawOutcome(t, l)
	require.NoError(t, m.f.Done(l.Lease, o))
	m.end(l, !o.Uncontacted)
}

// DoneAll ends several leases. Some may share a bundle.
func (m *lanesWorld) DoneAll(t *rapid.T) {
	var ends []frontier.End
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		if len(ends) > 0 && len(m.leases) == 0 {
			break
		}
		l := m.drawLease(t)
		o := m.drawOutcome(t, l)
		ends = append(ends, frontier.End{Lease: l.Lease, Outcome: o})
		m.end(l, !o.Uncontacted)
	}
	for _, x := range m.f.DoneAll(context.Background(), ends) {
		require.NoError(t, x.Err)
	}
}

func (m *lanesWorld) drawOutcome(t *rapid.T, l *laneLease) (o frontier.Outcome) {
	switch rapid.IntRange(0, 4).Draw(t, "outcome") {
	case 0:
		o = frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
		l.host.waiting++
	case 1:
		o.RetryAfter = time.Duration(rapid.IntRange(1, 9).Draw(t, "s")) * time.Second
		l.host.hold = later(l.host.hold, m.now().Add(o.RetryAfter))
	case 2:
		o.CrawlDelay = time.Duration(rapid.IntRange(1, 3).Draw(t, "s")) * time.Second
		l.host.crawl = o.CrawlDelay
	}
	return o
}

// leaveSlot notes that a lease, with those of its bundle, gives up a slot before it ends.
func (m *lanesWorld) leaveSlot(l *laneLease, left string, contacted bool) {
	g, at := m.groups[left], l.bundle.slot
	if contacted {
		at = later(at, m.now().Add(g.delay))
	}
	l.bundle.slot = time.Time{}
	g.used--
	g.leave(at)
}

// is notes which groups a lease counts for, with those of its bundle.
func (l *laneLease) is(group, old string, both bool) {
	for _, x := range l.bundle.members {
		x.group, x.old, x.both = group, old, both
	}
}

// move notes that a lease has a slot of another group only, or none.
func (m *lanesWorld) move(l *laneLease, to string, granted bool) {
	old, kept := l.old, granted && l.both && to == l.old
	if l.group != "" {
		if old == "" {
			old = l.group
		}
		m.leaveSlot(l, l.group, granted)
	}
	if l.both && !kept {
		m.leaveSlot(l, l.old, granted)
	}
	switch {
	case kept:
		old = ""
	case granted:
		m.groups[to].used++
	default:
		to = ""
	}
	l.is(to, old, false)
}

// spread notes that a lease has a slot of another group as well, as its host was assigned there.
func (m *lanesWorld) spread(t *rapid.T, l *laneLease, to string) {
	if l.both && l.old == to { // it comes back
		m.leaveSlot(l, l.group, true)
		l.is(to, "", false)
		return
	}
	require.True(t, m.groups[to].free(m.now()))
	m.groups[to].used++
	switch {
	case l.group == "":
		l.is(to, l.old, false)
	case l.both:
		m.leaveSlot(l, l.group, true)
		l.is(to, l.old, true)
	default:
		if g := m.groups[l.old]; g != nil {
			g.leave(m.now().Add(g.delay))
		}
		l.is(to, l.group, true)
	}
}

func (m *lanesWorld) Join(t *rapid.T) {
	l, name := m.drawLease(t), m.drawGroup(t)
	g := m.group(name)
	had := l.group == name
	err := m.f.Join(&l.Lease, name)
	require.Equal(t, name, l.Group)
	if had {
		require.NoError(t, err)
	} else {
		if err == nil && !(l.both && l.old == name) {
			require.True(t, g.free(m.now()), "%s granted a slot", name)
		}
		m.move(l, name, err == nil)
	}
	if l.host.group != name {
		l.host.group, l.host.told = name, false
	}
	if err != nil { // or a slot is kept for a host that is ready
		require.ErrorIs(t, err, frontier.ErrGroupBusy)
		require.NoError(t, m.f.Done(l.Lease, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		l.host.waiting++
		m.end(l, false)
	}
}

func (m *lanesWorld) Assign(t *rapid.T) {
	h := m.drawHost(t)
	name := rapid.SampledFrom([]string{"", "g", "h"}).Draw(t, "group")
	if name != "" {
		m.group(name)
	}
	require.NoError(t, m.f.Assign(h.name, name))
	h.group, h.saved, h.told = name, name, true
	for _, l := range m.leases {
		got := hook.Of(m.f).LeaseGroup(l.Lease)
		if l.host != h || got == l.group {
			continue
		}
		require.Equal(t, name, got)
		m.spread(t, l, name)
	}
	require.Equal(t, name, harness.GroupOf(m.f, h.name))
}

func (m *lanesWorld) SetGroup(t *rapid.T) {
	g := m.drawGroup(t)
	s := frontier.GroupSettings{Concurrency: rapid.IntRange(0, 3).Draw(t, "n")}
	x, delay := m.group(g), groupDelay
	if rapid.Bool().Draw(t, "delayed") {
		delay = longGroupDelay
		s.Delay = frontier.FixedDelay(delay)
	}
	require.NoError(t, m.f.SetGroup(g, s))
	x.resize(max(1, s.Concurrency))
	if delay != x.delay { // after a crash either counts, as it is forgotten and met again or not
		x.delay, x.vague = delay, true
		if at := m.crashed.Add(delay); at.Before(x.crash) {
			x.crash = at
		}
	}
}

func (m *lanesWorld) SetConcurrency(t *rapid.T) {
	h, n := m.drawHost(t), rapid.IntRange(1, 4).Draw(t, "n")
	require.NoError(t, m.f.UpdateRule(scope.Host(h.name), func(r *frontier.Rule) { r.Concurrency = n }))
	h.resize(n)
}

func (m *lanesWorld) Pass(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 300, 1000, 2500, 9000}).Draw(t, "ms")) * time.Millisecond)
}

func (m *lanesWorld) check(t *rapid.T) {
	require.NoError(t, m.f.Check())
	s := m.f.Stats()
	waiting := 0
	for _, h := range m.hosts {
		waiting += h.waiting
		// Nobody remembers the group of a host that joined it and has nothing to do.
		if h.group != "" && harness.GroupOf(m.f, h.name) == "" {
			require.True(t, h.waiting+h.used == 0 || h.rested)
			h.group, h.saved, h.told = "", "", false
		}
		h.rested = h.waiting+h.used == 0
		if !hook.Of(m.f).Resident(h.name) {
			h.vague = false
		}
	}
	require.EqualValues(t, waiting, s.Waiting)
	require.EqualValues(t, len(m.leases), s.Leased)
	for name, g := range m.groups {
		if x, ok := inspect.New(m.f).Group(name); ok {
			require.GreaterOrEqual(t, x.Leased, g.used)
		}
	}
}

func runLanesModel(tb testing.TB, t *rapid.T, durable bool) {
	m := &lanesWorld{clock: simclock.New(harness.Dawn), groups: map[string]*laneGroup{}}
	o := harness.Quantum(rapid.IntRange(1, 4).Draw(t, "quantum"), harness.ParkAfter(4*time.Second, frontier.Options{
		Clock: m.clock, Priorities: 3, Selector: selector.Strict(), Delay: frontier.FixedDelay(laneDelay),
		GroupDelay: frontier.FixedDelay(groupDelay), HostConcurrency: rapid.IntRange(1, 3).Draw(t, "concurrency"),
		LeaseTime: 24 * time.Hour,
	}))
	for i := range 5 {
		m.hosts = append(m.hosts, &laneHost{name: fmt.Sprintf("h%d.example", i), lanesModel: lanesModel{n: o.HostConcurrency}})
	}
	if durable {
		m.machine = spilltest.OpenMemory(tb, spill.Options{})
		o.Spill = m.machine.Store
	}
	m.opts = o
	m.open(t)
	defer func() { require.NoError(t, m.f.Close()) }()
	actions := map[string]func(*rapid.T){
		"Add": m.Add, "Next": m.Next, "Next2": m.Next, "Take": m.Take, "Take2": m.Take, "Done": m.Done, "DoneAll": m.DoneAll, "Pass": m.Pass, "Pass2": m.Pass,
		"Join": m.Join, "Assign": m.Assign, "SetGroup": m.SetGroup, "SetConcurrency": m.SetConcurrency, "": m.check,
	}
	if durable {
		actions["Reopen"] = func(t *rapid.T) { m.Reopen(tb, t) }
		actions["Move"] = func(t *rapid.T) { require.NoError(t, hook.Of(m.f).MoveNow(rapid.Bool().Draw(t, "evict"))) }
	}
	t.Repeat(actions)
}

func TestModelOfLanesInMemory(t *testing.T) {
	n := trycount.Of(t)
	rapid.Check(t, func(rt *rapid.T) { runLanesModel(t, rt, false); n.Tried(1) })
}

func TestModelOfLanesOnDisk(t *testing.T) {
	n := trycount.Of(t)
	rapid.Check(t, func(rt *rapid.T) { runLanesModel(t, rt, true); n.Tried(1) })
}
