// This file holds the counts of Statistics. Their size is bounded, whatever the number of hosts and
// types.

package processing

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Report holds the counts of Statistics. Its JSON form is in stats.json.
type Report struct {
	Since time.Time `json:"since"` // when counting began
	Total Sum       `json:"total"`
	// Status counts answers by status code, Types by media type, which is the Content-Type without
	// parameters. Types has "none" for answers without one, "malformed", and "other" for types
	// beyond the first 256.
	Status map[string]Sum `json:"status"`
	Types  map[string]Sum `json:"types"`
	Sizes  Histogram      `json:"sizes"`  // of bodies as sent, in bytes
	Millis Histogram      `json:"millis"` // how long fetches took
	// Hosts are the hosts with most answers, in descending order. They are found with
	// StatisticsOptions.Hosts counters ("space saving", Metwally and others, 2005): each host with
	// more than a Hosts-th of all answers is included, and no count is too low.
	Hosts []HostSum `json:"hosts"`
}

// Sum is a number of answers, and the bytes of their bodies as sent.
type Sum struct {
	Answers int64 `json:"answers"`
	Bytes   int64 `json:"bytes"`
}

func (s *Sum) add(bytes int64) {
	s.Answers++
	s.Bytes += bytes
}

// HostSum is the Sum of a host. Over is the greatest possible error of its count of answers. Bytes
// counts from the time since which the host has had a counter.
type HostSum struct {
	Host string `json:"host"`
	Sum
	Over int64 `json:"over"`
}

// Histogram counts values by powers of two: [0] counts zeros, [i] values from 2^(i-1) to 2^i-1.
type Histogram []int64

func (h Histogram) add(x int64) Histogram {
	i := bits.Len64(uint64(max(x, 0)))
	for len(h) <= i {
		h = append(h, 0)
	}
	h[i]++
	return h
}

// addTo adds to a sum by name; from a number of names on, to "other".
func addTo(m map[string]Sum, name string, bytes int64, most int) map[string]Sum {
	if m == nil {
		m = map[string]Sum{}
	}
	if _, ok := m[name]; !ok && len(m) >= most {
		name = "other"
	}
	s := m[name]
	s.add(bytes)
	m[name] = s
	return m
}

func (r *Report) clone() Report {
	c := *r
	c.Status, c.Types = maps.Clone(r.Status), maps.Clone(r.Types)
	c.Sizes, c.Millis = slices.Clone(r.Sizes), slices.Clone(r.Millis)
	return c
}

// String formats the report for people: at most ten hosts and types, everything else in full.
func (r Report) String() string {
	var b strings.Builder
	line := func(what, name string, s Sum) {
		fmt.Fprintf(&b, "%-8s %-40s %10d answers %14d bytes\n", what, name, s.Answers, s.Bytes)
	}
	line("all", "since "+r.Since.UTC().Format(time.RFC3339), r.Total)
	for _, code := range slices.Sorted(maps.Keys(r.Status)) {
		line("status", code, r.Status[code])
	}
	types := slices.SortedFunc(maps.Keys(r.Types), func(x, y string) int {
		return cmp.Or(cmp.Compare(r.Types[y].Answers, r.Types[x].Answers), cmp.Compare(x, y))
	})
	for _, t := range types[:min(10, len(types))] {
		line("type", fmt.Sprintf("%.40q", t), r.Types[t])
	}
	for i, n := range r.Sizes {
		if n > 0 {
			fmt.Fprintf(&b, "%-8s %-40s %10d answers\n", "size", span(i, "B"), n)
		}
	}
	for i, n := range r.Millis {
		if n > 0 {
			fmt.Fprintf(&b, "%-8s %-40s %10d answers\n", "took", span(i, "ms"), n)
		}
	}
	for _, h := range r.Hosts[:min(10, len(r.Hosts))] {
		line("host", h.Host, h.Sum)
	}
	return b.String()
}

// span names a bucket of a Histogram.
func span(i int, unit string) string {
	if i < 2 {
		return fmt.Sprintf("%d %s", i, unit)
	}
	return fmt.Sprintf("%d to %d %s", uint64(1)<<(i-1), uint64(1)<<i-1, unit)
}

// topHosts has a counter for each of the most frequent hosts. A host without a counter takes over
// that of the host with the fewest answers, including its count.
//
// It is a heap of counters by answers; counter.at is the position in the heap.
type topHosts struct {
	most   int
	byName map[string]*counter
	heap   []*counter
}

type counter struct {
	HostSum
	at int
}

func newTopHosts(most int) *topHosts { return &topHosts{most: most, byName: map[string]*counter{}} }

func (t *topHosts) add(host string, bytes int64) {
	c := t.byName[host]
	switch {
	case c != nil:
	case len(t.heap) < t.most:
		c = &counter{HostSum: HostSum{Host: host}}
		heap.Push(t, c)
		t.byName[host] = c
	default:
		c = t.heap[0]
		delete(t.byName, c.Host)
		c.HostSum = HostSum{Host: host, Sum: Sum{Answers: c.Answers}, Over: c.Answers}
		t.byName[host] = c
	}
	c.add(bytes)
	heap.Fix(t, c.at)
}

// list returns the hosts, in descending order of answers.
func (t *topHosts) list() []HostSum {
	all := make([]HostSum, len(t.heap))
	for i, c := range t.heap {
		all[i] = c.HostSum
	}
	slices.SortFunc(all, func(a, b HostSum) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Host, b.Host))
	})
	return all
}

// take starts with the hosts of an earlier list; if there are fewer counters, with the most
// frequent of them.
func (t *topHosts) take(hosts []HostSum) {
	for _, h := range hosts[:min(len(hosts), t.most)] {
		c := &counter{HostSum: h}
		heap.Push(t, c)
		t.byName[h.Host] = c
	}
}

// Len, Less, Swap, Push and Pop are for package heap.
func (t *topHosts) Len() int           { return len(t.heap) }
func (t *topHosts) Less(i, j int) bool { return t.heap[i].Answers < t.heap[j].Answers }
func (t *topHosts) Swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.heap[i].at, t.heap[j].at = i, j
}
func (t *topHosts) Push(x any) {
	c := x.(*counter)
	c.at = len(t.heap)
	t.heap = append(t.heap, c)
}
func (t *topHosts) Pop() any {
	c := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	return c
}
