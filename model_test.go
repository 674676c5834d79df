// This file drives a frontier with random operations beside a naive model of
// what it promises: order, politeness to the nanosecond, the outcome table, and
// what survives a restart.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/internal/tally"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
	promoted bool      // became waiting at due, and a crash would forget when
	inSched  bool      // on disk among the scheduled ones
	homed    bool
}

type modelHost struct {
	due   time.Time
	free  time.Time // the same but for its failures
	crawl time.Duration
	group string
	saved string // group as of the last Done
	rests bool   // all of its URLs waited for their time, when last looked at
	loose bool   // it may have lost its group since its URLs were deleted
	lease *modelLeaseState
	modelFailures
}

type modelLeaseState struct {
	item  *item // nil: contact only
	lease frontier.Lease
	again *item
	dead  bool   // the URL was deleted since
	group string // whose slot it holds
	old   string

	counted []modelCount
}

type model struct {
	t       *rapid.T
	tb      testing.TB
	clock   *simclock.Clock
	f       *frontier.Frontier
	machine *spilltest.Machine // nil: in memory
	opts    frontier.Options
	watch   *lockWatch // nil: nobody watches the lock

	rules        map[frontier.Scope]frontier.Rule
	pausedCrawls map[uint32]bool
	used         map[frontier.Scope]*modelUsage // of those with limits
	hostUsed     map[string]*modelUsage

	hosts     map[string]*modelHost
	groups    map[string]time.Time // free from
	waiting   map[string][]*item   // by host, in order
	scheduled []*item
	known     map[string]bool
	finished  map[string]bool
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

// forget ends the memberships of hosts of which nothing must be known, and sees
// whether those have lost theirs that have nothing but scheduled URLs, or that only
// the hold after a crash keeps from being contacted: it holds the group too.
func (m *model) forget() {
	for _, name := range m.resting() {
		h := m.hosts[name]
		if h.crawl > 0 || h.modelFailures != (modelFailures{}) {
			continue
		}
		if m.hostUsed[name] == nil || m.f.GroupOf(name) == "" { // what it has used may be known longer, and this with it
			h.group, h.saved = "", ""
		}
	}
	scheduled := m.scheduledHosts()
	for name, h := range m.hosts {
		rests := h.lease == nil && len(m.waiting[name]) == 0 && (scheduled[name] || !h.due.After(m.hold))
		if (rests || h.rests) && m.f.GroupOf(name) == "" {
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
			require.NoError(t, m.f.CommitNow())
			m.f.Stats() // lets those leave that may
			stays = m.f.Resident(name)
		}
		require.False(t, stays, "%s stays in memory", name)
	}
}

func (m *model) endLease(name string, end time.Time) {
	h := m.host(name)
	h.due = later(h.due, end.Add(max(modelDelay, h.crawl, h.gap())))
	h.free = later(h.free, end.Add(max(modelDelay, h.crawl)))
	for _, g := range []string{h.lease.group, h.lease.old} {
		if g != "" {
			m.groups[g] = later(m.groups[g], end.Add(modelDelay))
		}
	}
	h.lease, h.saved = nil, h.group
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
		m.finished[it.url] = true
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

// Delete deletes what there is of a host, or of all.
func (m *model) Delete(t *rapid.T) {
	scope, all := frontier.Domain("example"), rapid.IntRange(0, 3).Draw(t, "all") == 0
	name := ""
	if !all {
		name = m.drawHost()
		scope = frontier.Host(name)
	}
	ctx := context.Background()
	want := 0
	for host, l := range m.waiting {
		if all || host == name {
			want += len(l)
			delete(m.waiting, host)
		}
	}
	kept := m.scheduled[:0]
	scheduled := 0
	for _, it := range m.scheduled {
		if all || it.host == name {
			scheduled++
		} else {
			kept = append(kept, it)
		}
	}
	m.scheduled = kept
	for host, h := range m.hosts {
		if all || host == name {
			h.loose = true // its group may be forgotten with its last URL
		}
		if l := h.lease; l != nil && l.item != nil && (all || host == name) {
			l.dead, l.again = true, nil
		}
	}
	n, err := m.f.Delete(ctx, scope)
	require.NoError(t, err)
	require.GreaterOrEqual(t, int(n), want, "deleted")
	require.LessOrEqual(t, int(n), want+scheduled, "deleted")
}

func (m *model) admit(it *item, at time.Time) {
	delete(m.finished, it.url)
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
		if h.lease != nil && h.lease.group == group {
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

// drawHost draws one of a few hosts often, and one of many now and then.
func (m *model) drawHost() string {
	n := rapid.IntRange(0, 5).Draw(m.t, "host")
	if n == 5 {
		n += rapid.IntRange(0, 20).Draw(m.t, "rare host")
	}
	return fmt.Sprintf("h%d.example", n)
}

func (m *model) draw() (string, string, int) {
	h := m.drawHost()
	p := rapid.IntRange(0, 11).Draw(m.t, "path")
	url := fmt.Sprintf("http://%s/%d", h, p)
	return url, h, ownPrio(url)
}

// later is a time, near or far, that is no other URL's.
func (m *model) later() time.Time {
	m.millis++
	s := rapid.IntRange(1, 40).Draw(m.t, "s")
	if rapid.IntRange(0, 2).Draw(m.t, "far") == 0 {
		s *= 60
	}
	at := m.now().Add(time.Duration(s) * time.Second).Truncate(time.Millisecond)
	return at.Add(time.Millisecond * time.Duration(m.millis%1000))
}

func (m *model) Add(t *rapid.T) {
	var entries []frontier.Entry
	fresh, forced := 0, 0
	for range rapid.IntRange(1, 6).Draw(t, "n") {
		url, host, prio := m.draw()
		e := entry(url, prio)
		if rapid.IntRange(0, 4).Draw(t, "later") == 0 {
			e.NotBefore = m.later()
		}
		entries = append(entries, e)
		it := &item{url: url, host: host, prio: prio, attempt: 1}
		if !m.known[url] {
			m.known[url] = true
			fresh++
			m.host(host)
			m.admit(it, e.NotBefore)
		}
	}
	n, err := m.f.Add(context.Background(), entries...)
	require.NoError(t, err)
	require.Equal(t, fresh+forced, n)
}

func (m *model) Force(t *rapid.T) {
	url, host, prio := m.draw()
	e := entry(url, prio)
	e.Force = true
	if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
		e.NotBefore = m.later()
	}
	n, err := m.f.Add(context.Background(), e)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	m.forced(&item{url: url, host: host, prio: prio, attempt: 1, due: e.NotBefore})
}

func (m *model) Next(t *rapid.T) {
	l, at, err := m.f.TryNext()
	if err != nil {
		m.bury() // it may have given URLs up
	}
	best, event, any, total := 0, time.Time{}, false, 0
	soon := func(x time.Time) {
		if event.IsZero() || x.Before(event) {
			event = x
		}
	}
	for name, items := range m.waiting {
		total += len(items)
		if m.running(items) == 0 {
			continue
		}
		free, ok := m.free(name)
		if until, paused := m.heldUntil(name); paused || !until.IsZero() {
			if !paused && ok {
				soon(later(free, until))
			}
			continue
		}
		if !ok {
			continue
		}
		if free.After(m.now()) {
			soon(free)
			continue
		}
		any = true
		if m.host(name).group == "" {
			for _, it := range items {
				if m.runs(it) && (it.prio == frontier.Immediate || crawlOf(it.url) == l.Entry.Crawl) {
					best = max(best, m.served(it))
				}
			}
		}
	}
	leases := 0
	for _, h := range m.hosts {
		if h.lease != nil {
			leases++
			soon(h.lease.lease.Deadline)
		}
	}
	for _, it := range m.scheduled {
		soon(it.due)
	}
	switch {
	case errors.Is(err, frontier.ErrExhausted):
		require.Zero(t, leases+len(m.scheduled), "exhausted too early")
		m.over(t, err, total)
		return
	case errors.Is(err, frontier.ErrNotDue):
		require.False(t, any, "a host is due, and nothing was handed out")
		require.False(t, leases+len(m.scheduled) == 0 && m.paused() == total && !m.hold.After(m.now()) && !m.clockRuns(at), "nothing is left to wait for")
		if len(m.groups) == 0 && !m.hold.After(m.now()) && !m.blocks() && !m.pausedCrawls[0] && !m.pausedCrawls[7] {
			require.True(t, at.Equal(event), "come back at %v, want %v", at, event)
		}
		// A parked host of a busy group asks for a look too early, and so do hosts
		// whose delay is longer than the hold after a crash.
		require.False(t, at.After(event) && !event.IsZero(), "come back at %v, want %v", at, event)
		require.True(t, at.After(m.now()) || at.IsZero())
		return
	}
	require.NoError(t, err)
	h := m.host(l.Host)
	require.Nil(t, h.lease, "host is leased")
	free, ok := m.free(l.Host)
	require.True(t, ok, "group is busy")
	require.False(t, free.After(m.now()), "handed out %v early", free.Sub(m.now()))
	require.True(t, m.mayServe(l.Host), "a rule holds %s", l.Host)
	require.GreaterOrEqual(t, l.Priority, best, "strict")
	require.False(t, m.pausedCrawls[l.Entry.Crawl], "its crawl is paused")
	it := m.take(t, l)
	require.Equal(t, it.attempt, l.Attempt)
	if h.loose && l.Group == "" {
		h.group, h.saved = "", ""
	}
	h.lease = &modelLeaseState{item: it, lease: l, group: h.group, counted: m.count(l.Host, 1, 0)}
}

func (m *model) pickLease(t *rapid.T) (string, *modelLeaseState) {
	var names []string
	for n, h := range m.hosts {
		if h.lease != nil {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		t.Skip("no lease")
	}
	sort.Strings(names)
	n := rapid.SampledFrom(names).Draw(t, "lease")
	return n, m.hosts[n].lease
}

func (m *model) Done(t *rapid.T) {
	name, l := m.pickLease(t)
	h := m.host(name)
	o := frontier.Outcome{Result: m.drawResult(t)}
	if o.Result == frontier.Failed {
		o.Failure = rapid.SampledFrom([]frontier.Failure{frontier.FailureOther, frontier.FailureTooMany}).Draw(t, "failure")
	}
	if o.Result >= frontier.Denied {
		o.Uncontacted = rapid.Bool().Draw(t, "uncontacted")
	}
	if o.Result == frontier.PutOff {
		o.Uncontacted, o.Next = true, m.now().Add(time.Duration(rapid.IntRange(-1, 60).Draw(t, "put off"))*time.Second)
	}
	if rapid.IntRange(0, 3).Draw(t, "retryafter") == 0 {
		o.RetryAfter = time.Duration(rapid.IntRange(1, 90).Draw(t, "s")) * time.Second
	}
	if !o.Uncontacted && rapid.IntRange(0, 5).Draw(t, "crawldelay") == 0 {
		o.CrawlDelay = time.Duration(rapid.IntRange(1, 4).Draw(t, "s")) * time.Second
	}
	var fresh []*item
	for range rapid.IntRange(0, 3).Draw(t, "links") {
		url, host, prio := m.draw()
		o.Add = append(o.Add, entry(url, prio))
		if !m.known[url] {
			m.known[url] = true
			fresh = append(fresh, &item{url: url, host: host, prio: prio, attempt: 1})
		}
	}
	require.NoError(t, m.f.Done(l.lease, o))
	require.ErrorIs(t, m.f.Done(l.lease, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}), frontier.ErrNotLeased)
	if o.CrawlDelay > 0 {
		h.crawl = o.CrawlDelay
	}
	probed := h.probes > 0
	if o.Result == frontier.Failed {
		m.count(name, 0, 1)
	}
	if o.Uncontacted {
		l.giveBack(m, name)
		h.lease, h.saved = nil, h.group
	} else {
		h.modelFailures = h.ended(o, m.opts.Quarantine.After)
		m.endLease(name, m.now())
	}
	if o.RetryAfter > 0 {
		h.due = later(h.due, m.now().Add(o.RetryAfter))
		h.free = later(h.free, m.now().Add(o.RetryAfter))
	}
	for _, it := range fresh {
		m.host(it.host)
		m.admit(it, time.Time{})
	}
	it := l.item
	switch {
	case it == nil:
	case l.dead:
		m.ended(l, o.Result == frontier.Failed && !probed)
	case o.Result == frontier.Requeue && l.again == nil:
		m.insert(it)
	case o.Result == frontier.Failed:
		wait := modelWait
		for range it.attempt - 1 {
			wait *= 4
		}
		m.failed(it, l.again, m.now().Add(wait), probed)
	case l.again != nil:
		m.admit(l.again, l.again.due)
	case o.Result == frontier.PutOff:
		m.admit(&item{url: it.url, host: it.host, prio: it.prio, attempt: it.attempt}, o.Next)
	default:
		m.finished[it.url] = true
	}
}

func (m *model) HandBack(t *rapid.T) {
	name, l := m.pickLease(t)
	n, err := m.f.HandBack(l.lease)
	require.NoError(t, err)
	l.giveBack(m, name)
	switch {
	case l.item == nil:
	case l.again != nil:
		_, err := m.f.Add(context.Background()) // waits until that is committed
		require.NoError(t, err)
		m.admit(l.again, l.again.due)
	case !l.dead:
		m.insert(l.item)
	}
	m.hosts[name].lease.item, m.hosts[name].lease.lease, m.hosts[name].lease.again, m.hosts[name].lease.dead = nil, n, nil, false
}

func (m *model) Extend(t *rapid.T) {
	_, l := m.pickLease(t)
	d := time.Duration(rapid.IntRange(1, 40).Draw(t, "s")) * time.Second
	require.NoError(t, m.f.Extend(&l.lease, d))
	require.True(t, l.lease.Deadline.Equal(m.now().Add(d)))
}

func (m *model) Join(t *rapid.T) {
	name, l := m.pickLease(t)
	h := m.host(name)
	g := fmt.Sprintf("g%d", rapid.IntRange(0, 1).Draw(t, "group"))
	if _, ok := m.groups[g]; !ok {
		m.groups[g] = m.hold
	}
	granted := l.group == g || !m.busy(g) && !m.groups[g].After(m.now())
	// A slot may be kept for a host of the group that is ready: then Join is
	// refused although no lease is out.
	err := m.f.Join(&l.lease, g)
	if !granted {
		require.ErrorIs(t, err, frontier.ErrGroupBusy)
	}
	left := ""
	if l.group != g {
		if l.group != "" {
			left = l.group
			if l.old == "" {
				l.old = l.group
			}
		}
		l.group = ""
		h.group, h.loose = g, false
	}
	if err == nil {
		if l.group = g; left != "" {
			m.groups[left] = later(m.groups[left], m.now().Add(modelDelay)) // it may have been contacted
		}
		return
	}
	require.ErrorIs(t, err, frontier.ErrGroupBusy)
	require.NoError(t, m.f.Done(l.lease, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	l.giveBack(m, name)
	switch {
	case l.again != nil:
		m.admit(l.again, l.again.due)
	case l.item != nil && !l.dead:
		m.insert(l.item)
	}
	h.lease, h.saved = nil, h.group
}

func (m *model) Pass(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 300, 1000, 2500, 9000, 30000, 900_000}).Draw(t, "ms")) * time.Millisecond)
	m.f.ReadTimed()
	m.f.Stats() // settles what else time changed
	_, err := m.f.Add(context.Background())
	require.NoError(t, err)
	m.pass()
	m.left(t)
}

// Contact takes a lease of a host without a URL, if one may be had at once.
func (m *model) Contact(t *rapid.T) {
	name := m.drawHost()
	h := m.host(name)
	if at, ok := m.free(name); !ok || at.After(m.now()) || h.group != "" || m.f.GroupOf(name) != "" || !m.mayServe(name) {
		t.Skip("not free, held by a rule, or of a group, perhaps longer than needed: its slot may be kept for another host")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	l, err := m.f.Contact(ctx, name)
	require.NoError(t, err)
	h.lease = &modelLeaseState{lease: l}
}

func (m *model) Move(t *rapid.T) {
	if m.machine == nil {
		t.Skip("nothing to move to")
	}
	require.NoError(t, m.f.MoveNow(rapid.Bool().Draw(t, "evict")))
	for _, l := range m.waiting {
		for _, it := range l {
			m.moved(it, false)
		}
	}
	for _, it := range m.scheduled {
		m.moved(it, true)
	}
	for _, h := range m.hosts {
		if h.lease != nil && h.lease.item != nil {
			m.moved(h.lease.item, false)
		}
	}
}

func (m *model) moved(it *item, scheduled bool) {
	if it.homed {
		return
	}
	it.homed, it.inSched = true, scheduled
	if !scheduled {
		it.promoted = false
	}
}

// Reopen closes the frontier, or kills it, and opens it again.
func (m *model) Reopen(t *rapid.T) {
	if m.machine == nil {
		t.Skip("nothing would be left")
	}
	clean := rapid.Bool().Draw(t, "clean")
	machine := m.machine
	if !clean {
		machine = m.machine.Kill(m.tb)
	}
	require.NoError(t, m.f.Check())
	require.NoError(t, m.f.Close())
	if clean {
		machine = m.machine
	}
	m.machine = machine
	m.opts.Spill = machine.Store
	m.givenUp = 0
	opened := m.now()
	f := m.open(t)
	m.recall(t, clean)
	m.recount(t, clean)
	if !clean {
		m.hold = later(m.hold, opened.Add(modelDelay))
	}
	m.forget()
	for name, h := range m.hosts {
		leased := h.lease != nil
		if leased {
			if h.lease.item != nil && !h.lease.dead {
				m.insert(h.lease.item)
			}
			for _, g := range []string{h.lease.group, h.group, h.lease.old} {
				if g != "" && clean {
					m.groups[g] = later(m.groups[g], opened.Add(modelDelay))
				}
			}
			h.lease = nil
		}
		if !clean || leased {
			gap := h.gap()
			if h.probes > 0 && h.due.After(opened) { // no probe was under way
				if !clean && !leased { // but perhaps no row tells
					due := f.DueOf(name)
					require.False(t, due.Before(h.due) || due.After(later(h.due, opened.Add(gap))), "%s is due at %v", name, due)
					h.due = due
				}
				gap = 0
			}
			h.due = later(h.due, opened.Add(max(modelDelay, h.crawl, gap)))
			h.free = later(h.free, opened.Add(max(modelDelay, h.crawl)))
		}
		m.hosts[name] = h
	}
	for g, at := range m.groups {
		if !clean {
			m.groups[g] = later(at, opened.Add(modelDelay))
		}
	}
	// What became waiting at its time does so again, unless it was moved since.
	for name, l := range m.waiting {
		var kept []*item
		for _, it := range l {
			if it.promoted {
				it.promoted = false
				m.scheduled = append(m.scheduled, it)
				continue
			}
			kept = append(kept, it)
		}
		m.waiting[name] = kept
	}
	// A membership lasts through a crash once a lease of the host has ended. It
	// may last longer than needed.
	m.forget()
	for name, h := range m.hosts {
		if got := f.GroupOf(name); got != h.group {
			require.False(t, clean && !h.loose && h.group != "", "%s belongs to %q, want %q", name, got, h.group)
			require.False(t, !h.loose && h.group != "" && h.saved == h.group, "%s belongs to %q, want %q", name, got, h.group)
			h.group, h.saved = got, got
		}
	}
	m.f.Sweep()
	m.f.Stats()
	_, err := m.f.Add(context.Background()) // waits until what the opening began is committed
	require.NoError(t, err)
	m.f.ReadTimed()
	m.pass()
}

func (m *model) check(t *rapid.T) {
	m.f.ReadTimed()
	m.bury()
	require.NoError(t, m.f.Check())
	s := m.f.Stats()
	m.forget()
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
	require.EqualValues(t, leases, s.Leased, "leased")
	require.EqualValues(t, len(m.known), s.Known, "known")
	require.EqualValues(t, m.givenUp, s.GivenUp, "given up")
}

func (m *model) open(t *rapid.T) *frontier.Frontier {
	o := m.opts
	if m.watch != nil {
		m.watch.f.Store(nil)
		o = m.watch.watched(o)
	}
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	if m.f = f; m.watch != nil {
		m.watch.f.Store(f)
	}
	return f
}

func runModel(tb testing.TB, t *rapid.T, durable bool) { runWatchedModel(tb, t, durable, nil) }

func runWatchedModel(tb testing.TB, t *rapid.T, durable bool, watch *lockWatch) {
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := &model{
		t: t, tb: tb, clock: clock, watch: watch,
		rules:        map[frontier.Scope]frontier.Rule{},
		pausedCrawls: map[uint32]bool{},
		used:         map[frontier.Scope]*modelUsage{}, hostUsed: map[string]*modelUsage{},
		hosts: map[string]*modelHost{}, groups: map[string]time.Time{}, waiting: map[string][]*item{},
		known: map[string]bool{}, finished: map[string]bool{},
		opts: frontier.Options{
			Clock: clock, Priorities: modelLevels, Selector: frontier.Strict(), Delay: frontier.FixedDelay(modelDelay),
			LeaseTime: modelLease, Retry: frontier.Retries(modelTries, modelWait), Quantum: rapid.IntRange(1, 4).Draw(t, "quantum"),
			ParkAfter: 10 * time.Second, Backoff: modelBackoff, Quarantine: drawQuarantine(t),
		},
	}
	if durable {
		m.machine = spilltest.OpenMemory(tb, spill.Options{})
		m.opts.Spill = m.machine.Store
	}
	m.open(t)
	defer func() { require.NoError(t, m.f.Close()) }()
	actions := map[string]func(*rapid.T){
		"Add": m.Add, "Next": m.Next, "Next2": m.Next, "Next3": m.Next, "Done": m.Done, "Done2": m.Done, "Pass": m.Pass, "Pass2": m.Pass,
		"Contact": m.Contact, "Force": m.Force, "HandBack": m.HandBack, "Extend": m.Extend, "Join": m.Join, "LateDone": m.LateDone, "Rule": m.Rule, "Delete": m.Delete,
		"CrawlSettings": m.CrawlSettings, "CrawlNow": m.CrawlNow, "Look": m.Look, "Export": m.Export, "Forget": m.Forget, "Limit": m.Limit, "Priority": m.Priority, "Hint": m.Hint,
		"": m.check,
	}
	if durable {
		actions["Move"] = m.Move
		actions["Reopen"] = m.Reopen
	}
	t.Repeat(actions)
}

func TestModelInMemory(t *testing.T) {
	n := tally.Of(t)
	rapid.Check(t, func(rt *rapid.T) { runModel(t, rt, false); n.Tried(1) })
}

func TestModelOnDisk(t *testing.T) {
	n := tally.Of(t)
	rapid.Check(t, func(rt *rapid.T) { runModel(t, rt, true); n.Tried(1) })
}
