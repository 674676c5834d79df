// This file summarizes the record of ends for a report.

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

// Sizes of the report.
const (
	reportRows    = 15
	reportBuckets = 60 // columns over time
	reportMirror  = 4  // URLs listed per content
)

// summary is the report's summary of a record.
type summary struct {
	First, Last time.Time // when the first and the last URL ended
	Runs, Kills int
	Missing     int64 // records that could not be written
	Unreadable  int64 // lines that could not be read

	Pages, Answers, Failed, GivenUp, Refused, Robots int64
	Bytes                                            int64
	Outcomes                                         map[string]int64
	Statuses                                         map[int]int64
	Rules                                            map[string]*example
	Failures                                         map[string]*example
	Hosts                                            map[string]*hostSum
	Slowest                                          []crawllog.Record
	Lost                                             []crawllog.Record // the latest given up
	Mirrors                                          []*mirror
	Times                                            []int64 // responses by bucket
	Troubles                                         []int64 // failures by bucket
	Priorities                                       map[int][]int64
	Gaps                                             gaps

	seed    maphash.Seed
	digests map[uint64]uint64 // hash of the first URL; 0: several have the content
}

// example is a counter with one example.
type example struct {
	What, URL string
	Count     int64
}

// hostSum summarizes a host.
type hostSum struct {
	Host                          string
	Pages, Bytes, Failed, GivenUp int64
	Seconds                       float64 // total time of its responses
	Answers                       int64
	contacts                      []contact
}

// Mean returns its mean response time.
func (h *hostSum) Mean() time.Duration {
	return time.Duration(h.Seconds / float64(max(1, h.Answers)) * float64(time.Second))
}

// contact is the interval of a contact with a host.
type contact struct{ began, ended time.Time }

// mirror is a content with several URLs.
type mirror struct {
	Bytes int64
	URLs  []string // some of them
	Count int64
	all   map[uint64]bool
}

// More counts the URLs that are not listed.
func (m *mirror) More() int64 { return m.Count - int64(len(m.URLs)) }

// gaps counts the pauses between a host's contacts.
type gaps struct {
	Contacts, Early, Parallel int64 // all; before the host was due; before the previous one had ended
	Least                     time.Duration
	LeastHost                 string
	Buckets                   [len(gapBounds) + 1]int64
}

// gapBounds are the upper bounds of Buckets.
var gapBounds = [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 10 * time.Minute}

// tolerance is the allowed error of clocks.
const tolerance = time.Millisecond

// summarize reads a crawl's record.
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

// take adds a record.
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

// count counts a URL's end.
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

// generalized removes a host's own details from an error.
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

// most returns the examples with the highest counts.
func most(by map[string]*example) []*example {
	all := slices.SortedFunc(maps.Values(by), func(a, b *example) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What))
	})
	return all[:min(len(all), reportRows)]
}

// place adds a record to its time bucket, and its content to those of other URLs.
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

// bucket returns a time's bucket.
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

// Gap returns the least and the median pause between the host's contacts, and their number.
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

// largest returns the hosts with the most pages.
func (s *summary) largest() []*hostSum {
	all := slices.SortedFunc(maps.Values(s.Hosts), func(a, b *hostSum) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Host, b.Host))
	})
	return all[:min(len(all), reportRows)]
}
