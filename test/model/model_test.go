// This file drives a frontier with random operations in parallel with a naive model of its
// promises: order, politeness to the nanosecond, the outcome table, and what survives a restart.

package model

import (
	"context"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
)

const (
	modelLevels = 3
	modelDelay  = time.Second
	modelLease  = 20 * time.Second
	modelTries  = 3
	modelWait   = 2 * time.Second
)

// item is a URL in the model.
type item struct {
	url      string
	host     string
	prio     int
	order    int // of becoming waiting
	attempt  int
	due      time.Time // scheduled for, if it was
	promoted bool      // became waiting at due; an opening forgets when if it is inSched
	inSched  bool      // on disk among the scheduled ones
	homed    bool
	finished bool  // it is admitted as that
	again    *item // what a Force that met an earlier lease of it, which was lost, makes of it
}

type modelHost struct {
	due   time.Time
	free  time.Time // the same but for its failures
	crawl time.Duration
	group string
	saved string // group as of the last Done
	rests bool   // all of its URLs waited for their time, when last looked at
	loose bool   // it may have lost its group since its URLs were deleted
	fixed bool   // it was assigned to its group
	lease *modelLeaseState
	modelFailures
}

type modelLeaseState struct {
	item      *item // nil: contact only
	lease     frontier.Lease
	again     *item
	dead      bool   // the URL was deleted since
	forgotten bool   // and forgotten
	group     string // whose slot it holds
	old       string // that it belonged to before
	both      bool   // it holds a slot of that as well

	counted []modelCount
}

type model struct {
	t       *rapid.T
	tb      testing.TB
	clock   *simclock.Clock
	f       *frontier.Frontier
	machine *spilltest.Machine // nil: in memory
	opts    frontier.Options
	watch   *lockWatch // nil: the lock is not watched

	rules        map[scope.Scope]frontier.Rule
	pausedCrawls map[uint32]bool
	used         map[scope.Scope]*modelUsage // of those with limits
	hostUsed     map[string]*modelUsage

	hosts     map[string]*modelHost
	groups    map[string]time.Time // free from
	waiting   map[string][]*item   // by host, in order
	scheduled []*item
	known     map[string]bool
	ghosts    int // marks of URLs that were known, and forgotten
	values    map[string]string
	finished  map[string]bool
	kept      map[string]string // of these, those that stay as records, and their hosts
	order     int
	hold      time.Time
	millis    int
	givenUp   int // since it was opened
	expired   []frontier.Lease
}

func (m *model) now() time.Time { return m.clock.Now() }

func (m *model) host(name string) *modelHost {
	h := m.hosts[name]
	if h == nil {
		h = &modelHost{due: m.hold}
		m.hosts[name] = h
	}
	return h
}

func (m *model) push(it *item) {
	m.order++
	it.order = m.order
	m.insert(it)
}

func (m *model) insert(it *item) {
	l := append(m.waiting[it.host], it)
	sort.SliceStable(l, func(a, b int) bool { return l[a].order < l[b].order })
	m.waiting[it.host] = l
}

// pass lets the model catch up with the clock, as the frontier does.
func (m *model) pass() {
	if m.machine == nil {
		m.expire()
		m.promote()
		return
	}
	m.promote() // what replaces an expired lease's URL waits once it is committed
	m.expire()
}

func (m *model) expire() {
	names := make([]string, 0, len(m.hosts))
	for n := range m.hosts {
		names = append(names, n)
	}
	sort.Slice(names, func(a, b int) bool {
		la, lb := m.hosts[names[a]].lease, m.hosts[names[b]].lease
		if la == nil || lb == nil {
			return la != nil
		}
		return la.lease.Deadline.Before(lb.lease.Deadline)
	})
	for _, n := range names {
		h := m.hosts[n]
		if h.lease == nil || h.lease.lease.Deadline.After(m.now()) {
			continue
		}
		l := h.lease
		end := l.lease.Deadline
		m.expired = append(m.expired, l.lease)
		m.endLease(n, end)
		if l.item != nil {
			m.count(n, 0, 1)
		}
		switch it := l.item; {
		case it == nil:
		case l.dead:
			m.ended(l, h.probes == 0)
		default:
			m.failed(it, l.again, time.Time{}, h.probes > 0)
		}
	}
}

func (m *model) promote() {
	sort.SliceStable(m.scheduled, func(a, b int) bool { return m.scheduled[a].due.Before(m.scheduled[b].due) })
	for len(m.scheduled) > 0 && !m.scheduled[0].due.After(m.now()) {
		it := m.scheduled[0]
		m.scheduled = m.scheduled[1:]
		it.promoted = true
		m.push(it)
	}
}

// forget ends the memberships of hosts about which nothing must be known. It checks that hosts with
// only scheduled URLs have lost theirs, and so have hosts that only the hold after a crash keeps
// from being contacted, since it holds the group too.
func (m *model) forget() {
	for _, name := range m.resting() {
		h := m.hosts[name]
		if h.crawl > 0 || h.fixed || h.modelFailures != (modelFailures{}) {
			continue
		}
		if m.hostUsed[name] == nil || harness.GroupOf(m.f, name) == "" { // what it has used may be known longer, and this with it
			h.group, h.saved = "", ""
		}
	}
	scheduled := m.scheduledHosts()
	for name, h := range m.hosts {
		rests := h.lease == nil && len(m.waiting[name]) == 0 && (scheduled[name] || !h.due.After(m.hold))
		if (rests || h.rests) && !h.fixed && harness.GroupOf(m.f, name) == "" {
			h.group, h.saved = "", ""
		}
		h.rests = rests
	}
}

func (m *model) scheduledHosts() map[string]bool {
	hosts := map[string]bool{}
	for _, it := range m.scheduled {
		hosts[it.host] = true
	}
	for _, host := range m.kept {
		hosts[host] = true
	}
	return hosts
}

// resting lists the hosts that have nothing to do and may be contacted.
func (m *model) resting() (names []string) {
	scheduled := m.scheduledHosts()
	for name, h := range m.hosts {
		if h.lease == nil && len(m.waiting[name]) == 0 && !scheduled[name] && !h.due.After(m.now()) {
			names = append(names, name)
		}
	}
	return names
}

// left requires that hosts with nothing to do are not in memory. Those without a
// crawl delay may have a row that the next batch deletes.
func (m *model) left(t *rapid.T) {
	if m.machine == nil || m.hold.After(m.now()) {
		return
	}
	for _, name := range m.resting() {
		if m.hosts[name].crawl == 0 || m.hostUsed[name] != nil { // a batch may forget what it has used
			continue
		}
		stays := true
		for n := 0; stays && n < 100; n++ { // its row may wait for a batch, and what is swept behind our back may name it
			require.NoError(t, hook.Of(m.f).CommitNow())
			m.f.Stats() // lets those leave that may
			stays = hook.Of(m.f).Resident(name)
		}
		require.False(t, stays, "%s stays in memory", name)
	}
}

func (m *model) endLease(name string, end time.Time) {
	h := m.host(name)
	h.due = later(h.due, end.Add(max(modelDelay, h.crawl, h.gap())))
	h.free = later(h.free, end.Add(max(modelDelay, h.crawl)))
	for _, g := range []string{h.lease.group, h.lease.old, h.group} {
		m.stamp(g, end)
	}
	h.lease, h.saved = nil, h.group
}

// stamp notes a contact of a group; "" is none.
func (m *model) stamp(group string, at time.Time) {
	if group != "" {
		m.groups[group] = later(m.groups[group], at.Add(modelDelay))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// failed is the outcome table's row for a try that failed; at is when it comes
// again (zero: at once). While its host was being probed the try does not count.
func (m *model) failed(it, again *item, at time.Time, spared bool) {
	switch {
	case again != nil:
		m.admit(again, again.due)
	case spared:
		m.admit(&item{url: it.url, host: it.host, prio: ownPrio(it.url), attempt: it.attempt}, time.Time{})
	case it.attempt >= modelTries:
		m.givenUp++
		m.finish(it)
	default:
		n := &item{url: it.url, host: it.host, prio: ownPrio(it.url), attempt: it.attempt + 1}
		m.admit(n, at)
	}
}

// ended is the end of a URL that was deleted while it was leased: only what was
// forced since comes again. If its last try failed it is given up all the same.
func (m *model) ended(l *modelLeaseState, failed bool) {
	m.finished[l.item.url] = true
	switch {
	case l.again != nil:
		m.admit(l.again, l.again.due)
	case failed && l.item.attempt >= modelTries:
		m.givenUp++
	}
}

// finish is the end of a URL that nothing makes come again.
func (m *model) finish(it *item) {
	m.finished[it.url] = true
	if m.opts.Keep {
		m.kept[it.url] = it.host
	}
}

func (m *model) admit(it *item, at time.Time) {
	delete(m.finished, it.url)
	delete(m.kept, it.url)
	if it.finished {
		m.finish(it)
		return
	}
	if at.After(m.now()) {
		it.due = at
		m.scheduled = append(m.scheduled, it)
		return
	}
	m.push(it)
}

// busy reports whether a group's slot is held by a lease.
func (m *model) busy(group string) bool {
	for _, h := range m.hosts {
		if l := h.lease; l != nil && (l.group == group || l.both && l.old == group) {
			return true
		}
	}
	return false
}

// free is when a host that is not leased may be contacted; false if that
// depends on a lease.
func (m *model) free(name string) (time.Time, bool) {
	h := m.host(name)
	if h.lease != nil {
		return time.Time{}, false
	}
	at := later(h.due, m.hold)
	if h.group != "" {
		if m.busy(h.group) {
			return time.Time{}, false
		}
		at = later(at, m.groups[h.group])
	}
	return at, true
}

func (m *model) Pass(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 300, 1000, 2500, 9000, 30000, 900_000}).Draw(t, "ms")) * time.Millisecond)
	hook.Of(m.f).ReadTimed()
	m.f.Stats() // settles what else time changed
	_, err := m.f.Add(context.Background())
	require.NoError(t, err)
	m.pass()
	m.left(t)
}

func (m *model) check(t *rapid.T) {
	hook.Of(m.f).ReadTimed()
	m.bury()
	require.NoError(t, m.f.Check())
	s := m.f.Stats()
	m.forget()
	m.checkQueues(t)
	waiting, leases := 0, 0
	for _, l := range m.waiting {
		waiting += len(l)
	}
	for _, h := range m.hosts {
		if h.lease != nil {
			leases++
		}
	}
	require.EqualValues(t, waiting, s.Waiting, "waiting")
	by, now := m.countPriorities()
	require.Equal(t, by[:], s.WaitingBy, "waiting by priority")
	require.Equal(t, now, s.Immediate, "immediate")
	require.LessOrEqual(t, s.Held, int64(m.heldURLs()), "held")
	require.EqualValues(t, len(m.scheduled), s.Scheduled, "scheduled")
	require.EqualValues(t, len(m.kept), s.Finished, "finished")
	require.EqualValues(t, leases, s.Leased, "leased")
	require.EqualValues(t, len(m.known)+m.ghosts, s.Known, "known")
	require.EqualValues(t, m.givenUp, s.GivenUp, "given up")
}

func runModel(tb testing.TB, t *rapid.T, durable bool) { runWatchedModel(tb, t, durable, nil) }

func runWatchedModel(tb testing.TB, t *rapid.T, durable bool, watch *lockWatch) {
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := &model{
		values: map[string]string{},
		t:      t, tb: tb, clock: clock, watch: watch,
		rules:        map[scope.Scope]frontier.Rule{},
		pausedCrawls: map[uint32]bool{},
		used:         map[scope.Scope]*modelUsage{}, hostUsed: map[string]*modelUsage{},
		hosts: map[string]*modelHost{}, groups: map[string]time.Time{}, waiting: map[string][]*item{},
		known: map[string]bool{}, finished: map[string]bool{}, kept: map[string]string{},
		opts: harness.Quantum(rapid.IntRange(1, 4).Draw(t, "quantum"), harness.ParkAfter(10*time.Second, frontier.Options{
			Clock: clock, Priorities: modelLevels, Selector: selector.Strict(), Delay: frontier.FixedDelay(modelDelay),
			Keep: rapid.Bool().Draw(t, "keep"), Count: rapid.Bool().Draw(t, "count"), LeaseTime: modelLease, Retry: frontier.Retries(modelTries, modelWait),
			Backoff: modelBackoff, Quarantine: drawQuarantine(t),
		})),
	}
	if durable {
		m.machine = spilltest.OpenMemory(tb, spill.Options{})
		m.opts.Spill = m.machine.Store
	}
	ahead := time.Duration(rapid.SampledFrom([]int{0, 0, 3, 3600}).Draw(t, "clock ahead at first")) * time.Second
	clock.Step(ahead)
	m.open(t)
	clock.Step(-ahead)
	defer func() { require.NoError(t, m.f.Close()) }()
	actions := map[string]func(*rapid.T){
		"Add": m.Add, "Next": m.Next, "Next2": m.Next, "Next3": m.Next, "Done": m.Done, "Done2": m.Done, "Pass": m.Pass, "Pass2": m.Pass,
		"Contact": m.Contact, "Force": m.Force, "HandBack": m.HandBack, "Extend": m.Extend, "Join": m.Join, "Assign": m.Assign, "LateDone": m.LateDone, "Rule": m.Rule, "Delete": m.Delete,
		"CrawlRule": m.CrawlRule, "CrawlNow": m.CrawlNow, "Look": m.Look, "Export": m.Export, "Forget": m.Forget, "Limit": m.Limit, "Priority": m.Priority, "Hint": m.Hint, "Finish": m.Finish,
		"": m.check,
	}
	if durable {
		actions["Move"] = m.Move
		actions["Reopen"] = m.Reopen
	}
	t.Repeat(actions)
}

func TestModelInMemory(t *testing.T) {
	n := trycount.Of(t)
	rapid.Check(t, func(rt *rapid.T) { runModel(t, rt, false); n.Tried(1) })
}

func TestModelOnDisk(t *testing.T) {
	n := trycount.Of(t)
	rapid.Check(t, func(rt *rapid.T) { runModel(t, rt, true); n.Tried(1) })
}
