// This file sums up the record of ends for a report.

package main

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/crawler/crawllog"
)

// How much of something a report shows.
const (
	reportRows    = 15
	reportBuckets = 60 // of time
	reportMirror  = 4  // URLs of one content
)

// summary is what a report says of a record.
type summary struct {
	First, Last time.Time // when the first URL ended, and the last
	Runs, Kills int
	Missing     int64 // records that could not be written
	Unreadable  int64 // lines

	Pages, Answers, Failed, GivenUp, Refused, Robots int64
	Bytes                                            int64
	Outcomes                                         map[string]int64
	Statuses                                         map[int]int64
	Rules                                            map[string]*example
	Failures                                         map[string]*example
	Hosts                                            map[string]*hostSum
	Slowest                                          []crawllog.Record
	Lost                                             []crawllog.Record // given up, the newest
	Mirrors                                          []*mirror
	Times                                            []int64 // answers by bucket
	Troubles                                         []int64 // failures by bucket
	Priorities                                       map[int][]int64
	Gaps                                             gaps

	seed    maphash.Seed
	digests map[uint64]uint64 // of the first URL; 0: there are several
}

// example counts something, and has one of it.
type example struct {
	What, URL string
	Count     int64
}

// hostSum is what came of a host.
type hostSum struct {
	Host                          string
	Pages, Bytes, Failed, GivenUp int64
	Seconds                       float64 // of all answers
	Answers                       int64
	contacts                      []contact
}

// Mean is how long its answers took.
func (h *hostSum) Mean() time.Duration {
	return time.Duration(h.Seconds / float64(max(1, h.Answers)) * float64(time.Second))
}

// contact is a time at which a host was contacted.
type contact struct{ began, ended time.Time }

// mirror is content that several URLs have.
type mirror struct {
	Bytes int64
	URLs  []string // some of them
	Count int64
	all   map[uint64]bool
}

// More is how many URLs it has besides those that are listed.
func (m *mirror) More() int64 { return m.Count - int64(len(m.URLs)) }

// gaps are the pauses between contacts of a host.
type gaps struct {
	Contacts, Early, Parallel int64 // contacts; those before the host was due; those that began before the one before had ended
	Least                     time.Duration
	LeastHost                 string
	Buckets                   [len(gapBounds) + 1]int64
}

// gapBounds are the upper ends of Buckets.
var gapBounds = [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 10 * time.Minute}

// tolerance is how much a clock may be off.
const tolerance = time.Millisecond

// summarize reads the record of a crawl.
func summarize(dir string) (*summary, error) {
	s := &summary{
		Outcomes: map[string]int64{}, Statuses: map[int]int64{}, Rules: map[string]*example{}, Failures: map[string]*example{}, Hosts: map[string]*hostSum{},
		Times: make([]int64, reportBuckets), Troubles: make([]int64, reportBuckets), Priorities: map[int][]int64{}, seed: maphash.MakeSeed(), digests: map[uint64]uint64{},
	}
	ends := crawllog.NewView(endsPath(dir))
	if err := s.each(ends, s.take); err != nil {
		return nil, err
	}
	if err := s.each(crawllog.NewView(notTakenPath(dir)), func(r *crawllog.Record) {
		if r.Outcome == crawllog.Refused {
			note(s.Rules, "link: "+r.Rule, r.URL)
		}
	}); err != nil {
		return nil, err
	}
	mirrors := map[uint64]*mirror{}
	if err := s.each(ends, func(r *crawllog.Record) { s.place(r, mirrors) }); err != nil {
		return nil, err
	}
	for _, m := range mirrors {
		if m.Count = int64(len(m.all)); m.Count > 1 {
			s.Mirrors = append(s.Mirrors, m)
		}
	}
	slices.SortFunc(s.Mirrors, func(a, b *mirror) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.URLs[0], b.URLs[0]))
	})
	s.measureGaps()
	return s, nil
}

func (s *summary) each(v crawllog.View, take func(*crawllog.Record)) error {
	for r, err := range v.All() {
		switch {
		case errors.Is(err, crawllog.ErrLine):
			s.Unreadable++
		case err != nil:
			return err
		default:
			take(&r)
		}
	}
	return nil
}

// take counts a record.
func (s *summary) take(r *crawllog.Record) {
	switch r.Outcome {
	case crawllog.Opened:
		s.Runs++
		if r.Reason != "" {
			s.Kills++
		}
	case crawllog.Missing:
		s.Missing += r.Count
	}
	if !r.Outcome.OfURL() && r.Outcome != crawllog.Robots {
		return
	}
	if s.First.IsZero() || r.Time.Before(s.First) {
		s.First = r.Time
	}
	if r.Time.After(s.Last) {
		s.Last = r.Time
	}
	h := s.Hosts[r.Host]
	if h == nil {
		h = &hostSum{Host: r.Host}
		s.Hosts[r.Host] = h
	}
	if !r.Began.IsZero() {
		h.contacts = append(h.contacts, contact{r.Began, r.Began.Add(r.Took())})
		s.Gaps.Contacts++
		if !r.Due.IsZero() && r.Began.Before(r.Due.Add(-tolerance)) {
			s.Gaps.Early++
		}
		s.Bytes += r.Bytes
		h.Bytes += r.Bytes
	}
	if r.Outcome == crawllog.Robots {
		s.Robots++
		return
	}
	s.Outcomes[string(r.Outcome)]++
	if r.Status > 0 {
		s.Statuses[r.Status]++
	}
	s.count(r, h)
}

// count counts the end of a URL.
func (s *summary) count(r *crawllog.Record, h *hostSum) {
	switch r.Outcome {
	case crawllog.Fetched:
		s.Pages++
		h.Pages++
		if r.Digest != "" {
			key, url := maphash.String(s.seed, r.Digest), maphash.String(s.seed, r.URL)|1
			if first, ok := s.digests[key]; !ok {
				s.digests[key] = url
			} else if first != url {
				s.digests[key] = 0
			}
		}
	case crawllog.Failed, crawllog.GivenUp:
		s.Failed++
		h.Failed++
		why := r.Reason
		if r.Status > 0 {
			why = fmt.Sprintf("status %d", r.Status)
		}
		note(s.Failures, generalized(why, r.Host), r.URL)
		if r.Outcome == crawllog.GivenUp {
			s.GivenUp++
			h.GivenUp++
			s.Lost = append(s.Lost, *r)
			s.Lost = s.Lost[max(0, len(s.Lost)-reportRows):]
		}
	case crawllog.Refused:
		s.Refused++
		note(s.Rules, r.Rule, r.URL)
	}
	if r.Outcome.Answered() {
		s.Answers++
		h.Answers++
		h.Seconds += r.Seconds
		if len(s.Slowest) < reportRows || r.Seconds > s.Slowest[len(s.Slowest)-1].Seconds {
			s.Slowest = append(s.Slowest, *r)
			slices.SortStableFunc(s.Slowest, func(a, b crawllog.Record) int { return cmp.Compare(b.Seconds, a.Seconds) })
			s.Slowest = s.Slowest[:min(len(s.Slowest), reportRows)]
		}
	}
}

// generalized is an error without what only this host has.
func generalized(why, host string) string {
	if why = strings.ReplaceAll(why, host, "HOST"); len(why) > 120 {
		why = why[:120] + "..."
	}
	return strings.ToValidUTF8(why, "")
}

func note(by map[string]*example, what, url string) {
	x := by[what]
	if x == nil {
		x = &example{What: what, URL: url}
		by[what] = x
	}
	x.Count++
}

// most are the examples with the highest counts.
func most(by map[string]*example) []*example {
	all := slices.SortedFunc(maps.Values(by), func(a, b *example) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What))
	})
	return all[:min(len(all), reportRows)]
}

// place puts a record into its bucket of time, and its content with that of others.
func (s *summary) place(r *crawllog.Record, mirrors map[uint64]*mirror) {
	if !r.Outcome.OfURL() {
		return
	}
	i := s.bucket(r.Time)
	switch {
	case r.Outcome.Answered():
		s.Times[i]++
		if s.Priorities[r.Priority] == nil {
			s.Priorities[r.Priority] = make([]int64, reportBuckets)
		}
		s.Priorities[r.Priority][i]++
	case r.Outcome != crawllog.Refused:
		s.Troubles[i]++
	}
	if r.Outcome != crawllog.Fetched || r.Digest == "" {
		return
	}
	key := maphash.String(s.seed, r.Digest)
	if s.digests[key] != 0 {
		return
	}
	m := mirrors[key]
	if m == nil {
		m = &mirror{Bytes: r.Bytes, all: map[uint64]bool{}}
		mirrors[key] = m
	}
	if url := maphash.String(s.seed, r.URL); !m.all[url] {
		m.all[url] = true
		if len(m.URLs) < reportMirror {
			m.URLs = append(m.URLs, r.URL)
		}
	}
}

// bucket is where a time belongs.
func (s *summary) bucket(t time.Time) int {
	span := s.Last.Sub(s.First)
	if span <= 0 {
		return 0
	}
	return min(reportBuckets-1, max(0, int(float64(t.Sub(s.First))/float64(span)*reportBuckets)))
}

func (s *summary) measureGaps() {
	g := &s.Gaps
	for _, h := range s.Hosts {
		slices.SortFunc(h.contacts, func(a, b contact) int { return a.began.Compare(b.began) })
		for i := 1; i < len(h.contacts); i++ {
			gap := h.contacts[i].began.Sub(h.contacts[i-1].ended)
			if gap < 0 {
				g.Parallel++
				gap = 0
			}
			at := 0
			for at < len(gapBounds) && gap >= gapBounds[at] {
				at++
			}
			g.Buckets[at]++
			if g.LeastHost == "" || gap < g.Least {
				g.Least, g.LeastHost = gap, h.Host
			}
		}
	}
}

// Gap is the least and the median pause between its contacts, and how many there were.
func (h *hostSum) Gap() (least, median time.Duration, n int) {
	var all []time.Duration
	for i := 1; i < len(h.contacts); i++ {
		all = append(all, max(0, h.contacts[i].began.Sub(h.contacts[i-1].ended)))
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return all[0], all[len(all)/2], len(all)
}

// largest are the hosts with most pages.
func (s *summary) largest() []*hostSum {
	all := slices.SortedFunc(maps.Values(s.Hosts), func(a, b *hostSum) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Host, b.Host))
	})
	return all[:min(len(all), reportRows)]
}
