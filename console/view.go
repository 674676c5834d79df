// This file defines the API's response types.

package console

import (
	"context"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// Status describes the frontier as a whole.
type Status struct {
	Title   string    `json:"title"`
	Now     time.Time `json:"now"`
	Running float64   `json:"running_s"` // since New, until the end of the crawl

	State    string     `json:"state"` // StateRunning or another State constant
	Since    *time.Time `json:"state_since,omitempty"`
	Sentence string     `json:"sentence"`       // without a full stop
	Pace     string     `json:"pace,omitempty"` // what limits the pace, and what would help
	ETA      string     `json:"eta,omitempty"`  // an estimate, or why it is unknown

	Pages          int64      `json:"pages"`                 // fetched by this process
	PagesSince     *time.Time `json:"pages_since,omitempty"` // if the frontier had URLs before: since when pages are counted
	PagesPerSecond float64    `json:"pages_per_s"`           // over the last minute
	HostStates     HostStates `json:"host_states"`
	Traffic        Traffic    `json:"traffic"`
	Problems       []Problem  `json:"problems,omitempty"` // failing hosts, the longest-failing first
	ProblemHosts   int        `json:"problem_hosts"`      // number of failing hosts

	Paused  bool       `json:"paused,omitempty"`        // all hosts are paused
	Blocked *time.Time `json:"blocked_until,omitempty"` // all hosts are blocked until then

	Waiting   int64   `json:"waiting"`             // without parked URLs
	Parked    int64   `json:"parked,omitempty"`    // until the crawl wants them, or runs again
	WaitingBy []int64 `json:"waiting_by_priority"` // from priority 1 on
	Immediate int64   `json:"immediate"`
	Held      int64   `json:"held"`
	Scheduled int64   `json:"scheduled"`
	Leased    int64   `json:"leased"`
	Known     int64   `json:"known"`

	Hosts       int64 `json:"hosts"`
	Bound       int64 `json:"bound"`
	Groups      int64 `json:"groups"`
	BackedOff   int64 `json:"backed_off"`
	Quarantined int64 `json:"quarantined"`

	Added      int64            `json:"added"`
	Duplicates int64            `json:"duplicates"`
	Refused    int64            `json:"refused"`
	HandedOut  int64            `json:"handed_out"`
	Done       map[string]int64 `json:"done"` // by result
	Retried    int64            `json:"retried"`
	GivenUp    int64            `json:"given_up"`
	Deleted    int64            `json:"deleted"`
	Expired    int64            `json:"expired"`
	Unreadable int64            `json:"unreadable"`

	AddedPerSecond     float64 `json:"added_per_s"` // over the last minute
	HandedOutPerSecond float64 `json:"handed_out_per_s"`
	DonePerSecond      float64 `json:"done_per_s"`
	WaitMedian         float64 `json:"wait_median_s"`
	WaitP99            float64 `json:"wait_p99_s"`

	Memory       int64 `json:"memory_bytes"`
	MemoryBudget int64 `json:"memory_budget_bytes,omitempty"`
	Disk         int64 `json:"disk_bytes,omitempty"`

	Failures   map[string]int64 `json:"failures,omitempty"` // by kind
	Failing    []HostFailures   `json:"failing,omitempty"`  // hosts with the most failures
	Gaps       Gaps             `json:"gaps"`
	Events     []Notice         `json:"events,omitempty"` // newest first
	EventsLost int64            `json:"events_lost,omitempty"`
	Figures    []Figure         `json:"figures,omitempty"`
	Recrawl    *Recrawl         `json:"recrawl,omitempty"` // if the crawl fetches pages again
	Rates      []Rate           `json:"rates,omitempty"`
}

// HostStates counts the hosts with waiting or leased URLs by state.
type HostStates struct {
	Hosts    int64 `json:"hosts"`
	Fetching int64 `json:"fetching"`
	Ready    int64 `json:"ready"`
	Pausing  int64 `json:"pausing"`
	Slowed   int64 `json:"backing_off"`
	Probed   int64 `json:"in_quarantine"`
	Held     int64 `json:"held"`
	Part     bool  `json:"part,omitempty"` // only the largest hosts were counted
}

func (h hostStates) view() HostStates {
	return HostStates{h.of, h.n[hostFetching], h.n[hostReady], h.n[hostPausing], h.n[hostSlowed], h.n[hostProbed], h.n[hostHeld], h.part}
}

// status returns the crawl's state for a reader.
func (c *Console) status(ctx context.Context) Status {
	c.look(c.f.Now())
	return c.judged(ctx)
}

// Status returns the crawl's state for the process that runs it. Unlike a request, it does not count as a
// reader.
func (c *Console) Status(ctx context.Context) Status { return c.judged(ctx) }

// judged returns the crawl's state.
func (c *Console) judged(ctx context.Context) Status {
	s := c.f.Stats()
	now := c.f.Now()
	parked, parkedBy := c.parkedURLs()
	x := Status{
		Title: c.o.Title, Now: now.UTC(), Running: now.Sub(c.began).Seconds(),
		Waiting: max(0, s.Waiting-parked), Parked: parked, WaitingBy: s.WaitingBy, Immediate: s.Immediate, Held: max(0, s.Held-parked), Scheduled: s.Scheduled, Leased: s.Leased, Known: s.Known,
		Hosts: s.Hosts, Bound: s.Bound, Groups: s.Groups, BackedOff: s.BackedOff, Quarantined: s.Quarantined,
		Added: s.Added, Duplicates: s.Duplicates, Refused: s.Refused, HandedOut: s.HandedOut, Done: map[string]int64{},
		Retried: s.Retried, GivenUp: s.GivenUp, Deleted: s.Deleted, Expired: s.Expired, Unreadable: s.Unreadable,
		AddedPerSecond: s.Rates.Added, HandedOutPerSecond: s.Rates.HandedOut, DonePerSecond: s.Rates.Done,
		WaitMedian: s.Waits.Quantile(.5).Seconds(), WaitP99: s.Waits.Quantile(.99).Seconds(),
		Memory: s.MemoryBytes, MemoryBudget: c.o.MemoryBudget,
	}
	if c.earlier {
		x.PagesSince = when(c.began)
	}
	for i, n := range parkedBy {
		x.WaitingBy[i] = max(0, x.WaitingBy[i]-n)
	}
	all, _ := c.f.Rule(scope.All())
	x.Paused = all.Paused == scope.On
	if !all.BlockedUntil.IsZero() {
		x.Blocked = when(all.BlockedUntil)
	}
	for i, n := range s.Done {
		x.Done[frontier.Result(i).String()] = n
	}
	var lost int64
	x.Failures, x.Failing, x.Gaps, x.Events, lost = c.o.Watch.snapshot(20, 30)
	if c.unwatched {
		x.Gaps = Gaps{} // rather than no early contact
	}
	x.EventsLost = max(lost, s.EventsLost)
	_, x.Figures, x.Disk = c.history.last()
	x.Rates = c.history.rates(120)
	if c.o.Recrawl != nil {
		if x.Recrawl = c.o.Recrawl(); x.Recrawl != nil {
			x.Recrawl.NewPages = Unseen(x.Recrawl.Pages, x)
		}
	}
	x.Problems, x.ProblemHosts = c.problems(ctx, now)
	f := c.facts(ctx, &x, s)
	c.life.mu.Lock()
	defer c.life.mu.Unlock()
	f.phase, f.ending = c.life.phase, c.life.ending
	if f.phase == ended {
		x.Running = c.life.end.Sub(c.began).Seconds()
	}
	x.judge(f)
	if x.State != c.life.state {
		c.life.state, c.life.since = x.State, now
	}
	x.Since = when(c.life.since)
	if x.State == StateEnded || x.State == StateStopping || x.State == StateAtRest {
		for i := range x.Problems {
			x.Problems[i].Next = "nothing, until the crawl goes on"
		}
	}
	return x
}

// facts gathers the other inputs of the state. It counts pages and requests in x.
func (c *Console) facts(ctx context.Context, x *Status, s frontier.Stats) facts {
	f := facts{atRest: c.o.AtRest, silent: c.o.Watch.silent(), fault: c.o.Watch.storeFault(x.Now)}
	x.Pages = pagesOf(s)
	if c.o.Crawl != nil {
		crawl := c.o.Crawl()
		x.Pages, f.away, f.workers, f.maxPages = crawl.Pages, crawl.Away, crawl.Workers, crawl.MaxPages
	}
	x.Traffic = c.o.Watch.traffic(12)
	then, last := c.history.ago(time.Minute)
	d := last.at.Sub(then.at)
	x.PagesPerSecond, x.Traffic.BytesPer = per(then.pages, last.pages, d), per(then.bytes, last.bytes, d)
	f.recent, f.wrong = last.requests-then.requests, last.wrong-then.wrong
	x.Traffic.AllIn, x.Traffic.FailedIn = f.recent, f.wrong
	if d > 0 {
		f.growth = float64(last.waiting-then.waiting) / d.Seconds()
	}
	before, _ := c.history.ago(quiet)
	f.quiet = last.at.Sub(before.at) >= quiet-2*time.Second && before.handedOut == x.HandedOut
	f.states = last.states
	x.HostStates = f.states.view()
	if x.Leased == 0 && f.quiet && x.Waiting > 0 {
		if next, _ := c.views.Upcoming(ctx, 1, false); len(next) > 0 {
			f.next = c.hostRow(next[0].Host).Due
		}
	}
	return f
}

// quiet is how long a crawl with URLs hands out nothing before it counts as idle.
const quiet = 10 * time.Second

// pagesOf returns a crawl's pages if its crawler does not count them.
func pagesOf(s frontier.Stats) int64 {
	return s.Done[frontier.Visited] + s.Done[frontier.Changed] + s.Done[frontier.Unchanged]
}

// Stopped states that an operator holds all hosts; empty: none does.
func (s Status) Stopped() string {
	switch {
	case s.Paused:
		return "the whole crawl is paused"
	case s.Blocked != nil:
		return "the whole crawl is blocked until " + s.Blocked.Format(time.RFC3339)
	}
	return ""
}

// Recrawl describes the freshness of the copy, and its cost.
type Recrawl struct {
	Pages     int64   `json:"pages"`        // known pages to keep fresh
	NewPages  int64   `json:"new_pages"`    // admitted and never crawled; the Console counts them
	Freshness float64 `json:"freshness"`    // expected share of pages that are current, by weight
	Price     float64 `json:"price"`        // of a fetch, in days of weight: a page is fetched again when that gains more
	Budget    float64 `json:"budget_per_s"` // fetches, set or measured; 0: not yet known
	Demand    float64 `json:"demand_per_s"` // fetches that known pages need at this price
	NewShare  float64 `json:"new_share"`    // share of first visits among visits with a response
	Wasted    float64 `json:"wasted_share"` // share of visits of known pages that found nothing new
	Visits    int64   `json:"visits"`       // visits with a response
}

// Unseen counts the pages of a recrawl that were found and never crawled: what the frontier has beyond
// the crawled pages, which it all keeps.
func Unseen(pages int64, s Status) int64 {
	return max(0, s.Waiting+s.Scheduled+s.Leased-pages)
}

// HostRow is a host in a list.
type HostRow struct {
	Host      string     `json:"host"`
	Waiting   int64      `json:"waiting"`
	Scheduled int64      `json:"scheduled,omitempty"`
	Leased    int        `json:"leased,omitempty"`
	Due       *time.Time `json:"due,omitempty"` // when host and group allow the next contact
	Reason    string     `json:"reason"`
	Until     *time.Time `json:"until,omitempty"`
	Group     string     `json:"group,omitempty"`
	Failures  int        `json:"failures,omitempty"` // consecutive
	Parked    int64      `json:"parked,omitempty"`   // parked URLs
	Standing  int        `json:"standing,omitempty"` // levels by which its URLs are moved
	Pages     int        `json:"pages,omitempty"`    // visited, where that is counted: see Worth
	Useful    *float64   `json:"useful,omitempty"`   // part of them
}

func (c *Console) hostRow(h inspect.Host) HostRow {
	due := h.Due
	if h.GroupDue.After(due) {
		due = h.GroupDue
	}
	if byHand(h.Reason) {
		due = h.Until // zero: time alone does not end it
	}
	row := HostRow{
		Host: h.Host, Waiting: h.Waiting, Scheduled: h.Scheduled, Leased: h.Leased, Due: when(due),
		Reason: h.Reason.String(), Until: when(h.Until), Group: h.Group, Failures: h.Backoff.Failures, Standing: h.Standing,
	}
	row.Parked, _ = c.aside(h)
	if row.Waiting -= row.Parked; row.Parked > 0 && row.Waiting == 0 && h.Leased == 0 {
		row.Reason, row.Until = reasonParked, nil
	}
	return row
}

// when returns a pointer to t, or nil if t is zero.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// HostList is a part of the hosts. Next is the after of the request for the next part; empty: this is the
// last. A part may be short, or empty, although more follow: the search reached the time limit of a
// request. If Preparing, the list is empty because hosts are being sorted, which takes seconds for a
// million: ask again.
type HostList struct {
	Now       time.Time `json:"now"` // the frontier's clock, for all dates of hosts
	Hosts     []HostRow `json:"hosts"`
	Next      string    `json:"next,omitempty"`
	Preparing bool      `json:"preparing,omitempty"`
}

// Queue is a host's waiting URLs of one crawl and priority.
type Queue struct {
	Crawl    uint32 `json:"crawl"`
	Priority int    `json:"priority"`
	Waiting  int64  `json:"waiting"`
	Parked   bool   `json:"parked,omitempty"` // they are parked
}

// Backoff describes how failures slowed a host.
type Backoff struct {
	Step     int     `json:"step"`
	Gap      float64 `json:"gap_s"`
	Failures int     `json:"failures"`
	Probes   int     `json:"probes"`
}

// Host describes a host, and explains its state.
type Host struct {
	HostRow
	Now        time.Time  `json:"now"` // the frontier's clock, for all dates
	Known      bool       `json:"known"`
	Why        string     `json:"why"`
	Queues     []Queue    `json:"queues,omitempty"`
	Deadline   *time.Time `json:"deadline,omitempty"` // of its first lease
	CrawlDelay float64    `json:"crawl_delay_s,omitempty"`
	Backoff    *Backoff   `json:"backoff,omitempty"`
	Full       bool       `json:"full,omitempty"` // the frontier refuses new URLs of it
	Served     int64      `json:"served,omitempty"`
	Rule       Rule       `json:"rule,omitzero"` // that applies to it
	Problem    *Problem   `json:"problem,omitempty"`
	Delay      string     `json:"delay,omitempty"`    // between contacts, at present
	Requests   []Fetch    `json:"requests,omitempty"` // the last ones, newest first
}

func (c *Console) hostView(h inspect.Host, now time.Time) Host {
	x := Host{
		HostRow: c.ranked(c.hostRow(h)), Now: now.UTC(), Known: true, Why: why(h, now), Deadline: when(h.Deadline),
		CrawlDelay: h.CrawlDelay.Seconds(), Full: h.Full, Served: h.Used.Served, Rule: RuleOf(h.Rule),
	}
	for _, q := range h.Queues {
		home, _, parked := c.lot(q.Crawl)
		x.Queues = append(x.Queues, Queue{home, q.Priority, q.Waiting, parked})
	}
	if x.Reason == reasonParked {
		_, x.Why = c.aside(h)
	}
	if b := h.Backoff; b != (inspect.Backoff{}) {
		x.Backoff = &Backoff{b.Step, b.Gap.Seconds(), b.Failures, b.Probes}
	}
	if a, ok := c.o.Watch.ailingOf(h.Host); ok && (!a.since.IsZero() || x.Backoff != nil) {
		p := c.problem(h, now)
		x.Problem = &p
	}
	x.Requests = c.o.Watch.lastOf(func(f Fetch) bool { return f.Host == h.Host })
	if d := c.f.DelayOf(h.Host); d != nil {
		x.Delay = delayWords(d)
	}
	return x
}

// URL describes a URL.
type URL struct {
	URL      string     `json:"url"`
	Crawl    uint32     `json:"crawl"`
	State    string     `json:"state"` // an inspect.URLState, or parked
	Why      string     `json:"why"`
	Host     string     `json:"host"`
	Priority int        `json:"priority,omitempty"` // frontier.Immediate is above all
	Attempt  int        `json:"attempt,omitempty"`
	Depth    int        `json:"depth,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	Visits   int        `json:"visits,omitempty"`
	Changes  int        `json:"changes,omitempty"`
	Last     *time.Time `json:"last_visit,omitempty"`
	Ends     []End      `json:"ends,omitempty"` // newest first

	// In the answer about one URL that waits or is scheduled:
	Priorities int    `json:"priorities,omitempty"` // number of priorities
	Importance *Worth `json:"importance,omitempty"` // nil: the crawl's order knows nothing of links
	Standing   int    `json:"standing,omitempty"`   // of its host, in levels
	Ahead      *Ahead `json:"ahead,omitempty"`      // if it waits
}

// URLList is a part of the waiting URLs. For Next and Preparing see HostList.
type URLList struct {
	URLs      []URL  `json:"urls"`
	Next      string `json:"next,omitempty"`
	Preparing bool   `json:"preparing,omitempty"`
}

// ScopeRule is the rule of a scope.
type ScopeRule struct {
	Scope string `json:"scope"`
	Rule  Rule   `json:"rule"`
}

// RuleList is all rules, or the first ones if More is set.
type RuleList struct {
	Rules []ScopeRule `json:"rules"`
	More  bool        `json:"more,omitempty"`
}
