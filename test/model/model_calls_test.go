// This file makes the model's calls: each draws its arguments, does the same to the
// frontier and to the model, and compares the answers.

package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
)

// Delete deletes what there is of a host, or of all, in all crawls or in one.
func (m *model) Delete(t *rapid.T) {
	o := frontier.DeleteOptions{Scope: scope.Domain("example")}
	name := ""
	if rapid.IntRange(0, 3).Draw(t, "all") != 0 {
		name = m.drawHost()
		o.Scope = scope.Host(name)
	}
	if rapid.Bool().Draw(t, "of a crawl") {
		o.Crawls = []uint32{rapid.SampledFrom([]uint32{0, 7}).Draw(t, "crawl")}
	}
	o.Forget = rapid.IntRange(0, 2).Draw(t, "forget") == 0
	hit := func(it *item) bool {
		return (name == "" || it.host == name) && (o.Crawls == nil || o.Crawls[0] == crawlOf(it.url))
	}
	want := 0
	for host, l := range m.waiting {
		n := len(l)
		if l = slices.DeleteFunc(l, hit); len(l) == 0 {
			delete(m.waiting, host)
		} else {
			m.waiting[host] = l
		}
		want += n - len(l)
	}
	scheduled := len(m.scheduled)
	m.scheduled = slices.DeleteFunc(m.scheduled, hit)
	scheduled -= len(m.scheduled)
	for url, host := range m.kept {
		if hit(&item{url: url, host: host}) {
			scheduled++
			delete(m.kept, url)
		}
	}
	for host, h := range m.hosts {
		if name == "" || host == name {
			h.loose = !h.fixed // its group may be forgotten with its last URL
		}
		if l := h.lease; l != nil && l.item != nil && hit(l.item) {
			l.dead, l.again = true, nil
			l.forgotten = l.forgotten || o.Forget
		}
	}
	for url := range m.known {
		if o.Forget && hit(&item{url: url, host: hostOf(url)}) {
			delete(m.known, url)
			m.ghosts++
		}
	}
	n, err := m.f.DeleteWith(context.Background(), o)
	require.NoError(t, err)
	require.GreaterOrEqual(t, int(n), want, "deleted")
	require.LessOrEqual(t, int(n), want+scheduled, "deleted")
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
	if p%5 == 2 {
		url = fmt.Sprintf("%s%s/%d", named, h, p)
	}
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
	var want []frontier.Verdict
	for range rapid.IntRange(1, 6).Draw(t, "n") {
		url, host, prio := m.draw()
		e := entry(url, prio)
		if rapid.IntRange(0, 4).Draw(t, "later") == 0 {
			e.NotBefore = m.later()
		}
		entries = append(entries, e)
		it := &item{url: url, host: host, prio: prio, attempt: 1}
		if m.known[url] {
			want = append(want, frontier.EntryKnown)
			continue
		}
		want = append(want, frontier.EntryNew)
		m.known[url] = true
		m.host(host)
		m.admit(it, e.NotBefore)
	}
	got, err := m.f.AddVerdicts(context.Background(), entries...)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (m *model) Force(t *rapid.T) {
	url, host, prio := m.draw()
	e := entry(url, prio)
	e.Force = true
	if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
		e.NotBefore = m.later()
	}
	got, err := m.f.AddVerdicts(context.Background(), e)
	require.NoError(t, err)
	require.Equal(t, map[bool]frontier.Verdict{true: frontier.EntryForced, false: frontier.EntryNew}[m.known[url]], got[0])
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
		if at.Equal(event.Add(-1)) { // the date of the opening itself is kept as the nanosecond before it
			at = event
		}
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
	h.lease = &modelLeaseState{item: it, again: it.again, lease: l, group: h.group, counted: m.count(l.Host, 1, 0)}
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
	want := []frontier.Verdict{}
	for range rapid.IntRange(0, 3).Draw(t, "links") {
		url, host, prio := m.draw()
		link := entry(url, prio)
		link.AsIs = true
		o.Add = append(o.Add, link)
		want = append(want, frontier.EntryKnown)
		if !m.known[url] {
			m.known[url] = true
			want[len(want)-1] = frontier.EntryNew
			fresh = append(fresh, &item{url: url, host: host, prio: prio, attempt: 1})
		}
	}
	found, err := m.f.LeaseByID(l.lease.ID())
	require.NoError(t, err)
	found.Due, found.Group, found.Priority = l.lease.Due, l.lease.Group, l.lease.Priority // a rule may have changed it since
	require.Equal(t, l.lease, found)
	again := frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
	if rapid.Bool().Draw(t, "all") {
		got := m.f.DoneAll(context.Background(), []frontier.End{{Lease: found, Outcome: o}, {Lease: l.lease, Outcome: again}})
		require.Equal(t, frontier.Ended{Verdicts: want}, got[0])
		require.ErrorIs(t, got[1].Err, frontier.ErrNotLeased)
	} else {
		require.NoError(t, m.f.Done(found, o))
		require.ErrorIs(t, m.f.Done(l.lease, again), frontier.ErrNotLeased)
	}
	_, err = m.f.LeaseByID(l.lease.ID())
	require.ErrorIs(t, err, frontier.ErrNotLeased)
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
		m.finish(it)
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
	m.hosts[name].lease.forgotten = false
}

func (m *model) Extend(t *rapid.T) {
	_, l := m.pickLease(t)
	d := time.Duration(rapid.IntRange(1, 40).Draw(t, "s")) * time.Second
	require.NoError(t, m.f.Extend(&l.lease, d))
	require.True(t, l.lease.Deadline.Equal(m.now().Add(d)))
}

// Contact takes a lease of a host without a URL, if one may be had at once.
func (m *model) Contact(t *rapid.T) {
	name := m.drawHost()
	h := m.host(name)
	if at, ok := m.free(name); !ok || at.After(m.now()) || h.group != "" || harness.GroupOf(m.f, name) != "" || !m.mayServe(name) {
		t.Skip("not free, held by a rule, or of a group, perhaps longer than needed: its slot may be kept for another host")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	l, err := m.f.Contact(ctx, name)
	require.NoError(t, err)
	h.lease = &modelLeaseState{lease: l}
}
