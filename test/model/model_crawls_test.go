package model

import (
	"context"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// crawlOf is the crawl of a URL in the model: some paths belong to another one.
func crawlOf(url string) uint32 {
	if strings.HasSuffix(url, "1") || strings.HasSuffix(url, "6") {
		return 7
	}
	return 0
}

// ownPrio is the priority that the prioritizer gives a URL.
func ownPrio(url string) int {
	p, err := strconv.Atoi(url[strings.LastIndexByte(url, '/')+1:])
	if err != nil {
		panic(err)
	}
	return 1 + p%modelLevels
}

// named begins URLs that do not parse: their entries name the host.
const named = "page of "

// entry is the entry of a URL.
func entry(url string, prio int) frontier.Entry {
	e := frontier.Entry{URL: url, Depth: modelLevels - prio, Crawl: crawlOf(url)}
	if rest, ok := strings.CutPrefix(url, named); ok {
		e.Host, _, _ = strings.Cut(rest, "/")
	}
	return e
}

// hostOf is the host of a URL of the model's.
func hostOf(url string) string {
	url = strings.TrimPrefix(strings.TrimPrefix(url, named), "http://")
	host, _, _ := strings.Cut(url, "/")
	return host
}

// runs reports whether the URL's crawl is not paused.
func (m *model) runs(it *item) bool { return !m.pausedCrawls[crawlOf(it.url)] }

// running counts the URLs of crawls that are not paused.
func (m *model) running(items []*item) (n int) {
	for _, it := range items {
		if m.runs(it) {
			n++
		}
	}
	return n
}

// CrawlRule gives a crawl a weight, and pauses it or lets it run.
func (m *model) CrawlRule(t *rapid.T) {
	id := rapid.SampledFrom([]uint32{0, 7}).Draw(t, "crawl")
	s := frontier.Rule{Weight: rapid.IntRange(1, 3).Draw(t, "weight")}
	if rapid.IntRange(0, 2).Draw(t, "pause") == 0 {
		s.Paused = scope.On
	}
	require.NoError(t, m.f.UpdateRule(scope.Crawl(id), func(r *frontier.Rule) { *r = s }))
	m.pausedCrawls[id] = s.Paused == scope.On
}

// CrawlNow puts a URL ahead of all others.
func (m *model) CrawlNow(t *rapid.T) {
	url, host, prio := m.draw()
	n, err := m.f.CrawlNow(context.Background(), entry(url, prio))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	m.forced(&item{url: url, host: host, prio: frontier.Immediate, attempt: 1})
}

// forced replaces the known record of a URL.
func (m *model) forced(it *item) {
	m.known[it.url] = true
	if l := m.host(it.host).lease; l != nil && l.item != nil && l.item.url == it.url && !l.forgotten {
		l.again = it
		return
	}
	for i, x := range m.waiting[it.host] {
		if x.url == it.url {
			m.waiting[it.host] = append(m.waiting[it.host][:i:i], m.waiting[it.host][i+1:]...)
			break
		}
	}
	for i, x := range m.scheduled {
		if x.url == it.url {
			m.scheduled = append(m.scheduled[:i:i], m.scheduled[i+1:]...)
			break
		}
	}
	m.admit(it, it.due)
}
