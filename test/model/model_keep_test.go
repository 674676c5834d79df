// This file is the part of the model that admits URLs as finished, and counts URLs by queue.

package model

import (
	"context"
	"slices"

	"github.com/seed-7440039f/frontier/inspect"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Finish admits a URL as finished: one that is new, or with Force any. A leased one is
// finished after its Done.
func (m *model) Finish(t *rapid.T) {
	url, host, prio := m.draw()
	e := entry(url, prio)
	e.Finished, e.Force = true, rapid.Bool().Draw(t, "force")
	n, err := m.f.Add(context.Background(), e)
	it := &item{url: url, host: host, prio: prio, attempt: 1, finished: true}
	switch {
	case !m.opts.Keep:
		require.ErrorContains(t, err, "Finished is for frontiers with Options.Keep")
		return
	case e.Force:
		m.forced(it)
	case !m.known[url]:
		m.known[url] = true
		m.host(host)
		m.admit(it, it.due)
	default:
		require.NoError(t, err)
		require.Zero(t, n)
		return
	}
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s, err := inspect.New(m.f).Status(context.Background(), e)
	require.NoError(t, err)
	if l := m.host(host).lease; l != nil && l.item != nil && l.item.url == url && m.kept[url] == "" {
		require.Equal(t, inspect.URLLeased, s.State)
		return
	}
	require.Equal(t, inspect.URLFinished, s.State)
	require.True(t, s.Entry.Finished)
}

// checkQueues compares the counts of all queues with the model.
func (m *model) checkQueues(t *rapid.T) {
	if !m.opts.Count {
		return
	}
	want := map[uint32]map[string]inspect.Counts{}
	count := func(host, url string, n inspect.Counts) {
		crawl := crawlOf(url)
		if want[crawl] == nil {
			want[crawl] = map[string]inspect.Counts{}
		}
		x := want[crawl][host]
		want[crawl][host] = inspect.Counts{Waiting: x.Waiting + n.Waiting, Scheduled: x.Scheduled + n.Scheduled, Leased: x.Leased + n.Leased, Finished: x.Finished + n.Finished}
	}
	for _, l := range m.waiting {
		for _, it := range l {
			count(it.host, it.url, inspect.Counts{Waiting: 1})
		}
	}
	for _, it := range m.scheduled {
		count(it.host, it.url, inspect.Counts{Scheduled: 1})
	}
	for url, host := range m.kept {
		count(host, url, inspect.Counts{Finished: 1})
	}
	for host, h := range m.hosts {
		if h.lease != nil && h.lease.item != nil && !h.lease.dead {
			count(host, h.lease.item.url, inspect.Counts{Leased: 1})
		}
	}
	for _, crawl := range []uint32{0, 7} {
		got := map[string]inspect.Counts{}
		var sum inspect.Counts
		for host, x := range inspect.New(m.f).Queues(crawl, "") {
			require.NotContains(t, got, host)
			got[host] = x
			again, ok, err := inspect.New(m.f).Counts(host, crawl)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, x, again)
			sum.Scheduled += x.Scheduled
			sum.Finished += x.Finished
		}
		if want[crawl] == nil {
			want[crawl] = map[string]inspect.Counts{}
		}
		require.Equal(t, want[crawl], got, "queues of crawl %d", crawl)
		s, ok := inspect.New(m.f).Crawl(crawl)
		require.True(t, ok || sum == inspect.Counts{}, "crawl %d", crawl)
		require.True(t, !ok || slices.Contains(inspect.New(m.f).Crawls(), crawl), "crawl %d", crawl)
		require.Equal(t, sum, inspect.Counts{Scheduled: s.Scheduled, Finished: s.Finished})
	}
}
