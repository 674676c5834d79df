// This file has the figures of a frontier's Stats.

package metrics

import (
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// Options say what a frontier does not know about itself. The zero value leaves the
// figures out that need them.
type Options struct {
	// MemoryBudget is the frontier's Options.MemoryBudget in bytes.
	MemoryBudget int64
	// Dir is the folder of the store. The free space of its volume is read at each Read.
	Dir string
	// Disk returns how many bytes the store has on disk. It is called at each Read.
	Disk func() int64
}

// maxCrawls is how many crawls have figures: those with the lowest numbers.
const maxCrawls = 256

// number is a Metric without a label that Stats has.
type number struct {
	Metric
	of func(s *frontier.Stats) int64
}

// numbers are in the order of Stats.
var numbers = []number{
	{Metric{Name: "frontier_urls_held", OTel: "frontier.url.held", Kind: Level, Unit: "{url}", Help: "Waiting URLs whose host or crawl was found paused, blocked or at a limit."}, func(s *frontier.Stats) int64 { return s.Held }},
	{Metric{Name: "frontier_urls_scheduled", OTel: "frontier.url.scheduled", Kind: Level, Unit: "{url}", Help: "URLs with a future time, and due ones that are not read yet."}, func(s *frontier.Stats) int64 { return s.Scheduled }},
	{Metric{Name: "frontier_urls_finished", OTel: "frontier.url.finished", Kind: Level, Unit: "{url}", Help: "URLs that are done and kept."}, func(s *frontier.Stats) int64 { return s.Finished }},
	{Metric{Name: "frontier_urls_known", OTel: "frontier.url.known", Kind: Level, Unit: "{url}", Help: "URLs remembered as admitted."}, func(s *frontier.Stats) int64 { return s.Known }},
	{Metric{Name: "frontier_leases_out", OTel: "frontier.lease.out", Kind: Level, Unit: "{lease}", Help: "Leases that are out, including those for contact only."}, func(s *frontier.Stats) int64 { return s.Leased }},
	{Metric{Name: "frontier_changes_pending", OTel: "frontier.change.pending", Kind: Level, Unit: "{change}", Help: "Calls, and leases that expired, whose changes are on their way to the disk."}, func(s *frontier.Stats) int64 { return s.Pending }},
	{Metric{Name: "frontier_hosts", OTel: "frontier.host.count", Kind: Level, Unit: "{host}", Help: "Hosts in memory."}, func(s *frontier.Stats) int64 { return s.Hosts }},
	{Metric{Name: "frontier_hosts_bound", OTel: "frontier.host.bound", Kind: Level, Unit: "{host}", Help: "Hosts that have a back queue."}, func(s *frontier.Stats) int64 { return s.Bound }},
	{Metric{Name: "frontier_hosts_backed_off", OTel: "frontier.host.backed_off", Kind: Level, Unit: "{host}", Help: "Hosts that failures slowed down."}, func(s *frontier.Stats) int64 { return s.BackedOff }},
	{Metric{Name: "frontier_hosts_quarantined", OTel: "frontier.host.quarantined", Kind: Level, Unit: "{host}", Help: "Hosts that are only probed."}, func(s *frontier.Stats) int64 { return s.Quarantined }},
	{Metric{Name: "frontier_groups", OTel: "frontier.group.count", Kind: Level, Unit: "{group}", Help: "Groups of hosts."}, func(s *frontier.Stats) int64 { return s.Groups }},
	{Metric{Name: "frontier_urls_added_total", OTel: "frontier.url.added", Kind: Counter, Unit: "{url}", Help: "URLs admitted for the first time, or by Force."}, func(s *frontier.Stats) int64 { return s.Added }},
	{Metric{Name: "frontier_urls_duplicate_total", OTel: "frontier.url.duplicate", Kind: Counter, Unit: "{url}", Help: "Entries refused because they were known."}, func(s *frontier.Stats) int64 { return s.Duplicates }},
	{Metric{Name: "frontier_urls_refused_total", OTel: "frontier.url.refused", Kind: Counter, Unit: "{url}", Help: "Entries and outlinks refused: malformed, too long, or over a limit."}, func(s *frontier.Stats) int64 { return s.Refused }},
	{Metric{Name: "frontier_urls_retried_total", OTel: "frontier.url.retried", Kind: Counter, Unit: "{url}", Help: "Failed URLs that were scheduled again."}, func(s *frontier.Stats) int64 { return s.Retried }},
	{Metric{Name: "frontier_urls_risen_total", OTel: "frontier.url.risen", Kind: Counter, Unit: "{url}", Help: "Waiting URLs that a Riser or a hint moved to a higher priority."}, func(s *frontier.Stats) int64 { return s.Risen }},
	{Metric{Name: "frontier_rise_notes_total", OTel: "frontier.rise.note", Kind: Counter, Unit: "{note}", Help: "Notes that a waiting URL may deserve a higher priority."}, func(s *frontier.Stats) int64 { return s.Noted }},
	{Metric{Name: "frontier_rise_notes_dropped_total", OTel: "frontier.rise.note.dropped", Kind: Counter, Unit: "{note}", Help: "Notes for which there was no room."}, func(s *frontier.Stats) int64 { return s.Unnoted }},
	{Metric{Name: "frontier_rise_walks_total", OTel: "frontier.rise.walk", Kind: Counter, Unit: "{walk}", Help: "Searches of hosts for waiting URLs that were noted."}, func(s *frontier.Stats) int64 { return s.Walks }},
	{Metric{Name: "frontier_rise_walked_total", OTel: "frontier.rise.walked", Kind: Counter, Unit: "{url}", Help: "URLs that the searches read."}, func(s *frontier.Stats) int64 { return s.Walked }},
	{Metric{Name: "frontier_urls_given_up_total", OTel: "frontier.url.given_up", Kind: Counter, Unit: "{url}", Help: "URLs whose tries were used up, or whose hosts were given up."}, func(s *frontier.Stats) int64 { return s.GivenUp }},
	{Metric{Name: "frontier_urls_deleted_total", OTel: "frontier.url.deleted", Kind: Counter, Unit: "{url}", Help: "URLs that Delete removed."}, func(s *frontier.Stats) int64 { return s.Deleted }},
	{Metric{Name: "frontier_urls_unreadable_total", OTel: "frontier.url.unreadable", Kind: Counter, Unit: "{url}", Help: "URLs in blocks that are damaged; they stay on disk."}, func(s *frontier.Stats) int64 { return s.Unreadable }},
	{Metric{Name: "frontier_leases_total", OTel: "frontier.lease.granted", Kind: Counter, Unit: "{lease}", Help: "Leases, including those for contact only."}, func(s *frontier.Stats) int64 { return s.HandedOut }},
	{Metric{Name: "frontier_leases_expired_total", OTel: "frontier.lease.expired", Kind: Counter, Unit: "{lease}", Help: "Leases that ended by their deadline."}, func(s *frontier.Stats) int64 { return s.Expired }},
	{Metric{Name: "frontier_events_lost_total", OTel: "frontier.event.lost", Kind: Counter, Unit: "{event}", Help: "Events that OnEvent missed because it was slow."}, func(s *frontier.Stats) int64 { return s.EventsLost }},
	{Metric{Name: "frontier_memory_bytes", OTel: "frontier.memory.usage", Kind: Level, Unit: "By", Help: "Memory of the frontier, plus the most that its Spill takes."}, func(s *frontier.Stats) int64 { return s.MemoryBytes }},
	{Metric{Name: "frontier_memory_urls_bytes", OTel: "frontier.memory.url", Kind: Level, Unit: "By", Help: "Part of frontier_memory_bytes: URLs in memory."}, func(s *frontier.Stats) int64 { return s.Resident }},
}

var (
	waiting      = Metric{Name: "frontier_urls_waiting", OTel: "frontier.url.waiting", Kind: Level, Unit: "{url}", Label: "priority", Help: "URLs that may be handed out as soon as their hosts may be contacted."}
	outcomes     = Metric{Name: "frontier_outcomes_total", OTel: "frontier.lease.outcome", Kind: Counter, Unit: "{lease}", Label: "result", Help: "Leases that ended by Done, by result."}
	waits        = Metric{Name: "frontier_url_wait_seconds", OTel: "frontier.url.wait.duration", Kind: Histogram, Unit: "s", Label: "priority", Help: "How long URLs added since Open waited to be handed out.", Bounds: waitBounds()}
	budget       = Metric{Name: "frontier_memory_budget_bytes", OTel: "frontier.memory.limit", Kind: Level, Unit: "By", Help: "The memory that the frontier may take."}
	diskUsed     = Metric{Name: "frontier_disk_bytes", OTel: "frontier.disk.usage", Kind: Level, Unit: "By", Help: "What the store has on disk."}
	diskFree     = Metric{Name: "frontier_disk_free_bytes", OTel: "frontier.disk.free", Kind: State, Unit: "By", Help: "Free space of the store's volume."}
	crawls       = Metric{Name: "frontier_crawls", OTel: "frontier.crawl.count", Kind: Level, Unit: "{crawl}", Help: "Crawls that the frontier knows. The 256 with the lowest numbers have figures."}
	crawlWaiting = Metric{Name: "frontier_crawl_urls_waiting", OTel: "frontier.crawl.url.waiting", Kind: Level, Unit: "{url}", Label: "crawl", Help: "Part of the waiting URLs: those of a crawl."}
	crawlLeased  = Metric{Name: "frontier_crawl_leases_out", OTel: "frontier.crawl.lease.out", Kind: Level, Unit: "{lease}", Label: "crawl", Help: "Leases of a crawl that are out."}
	crawlAdded   = Metric{Name: "frontier_crawl_urls_added_total", OTel: "frontier.crawl.url.added", Kind: Counter, Unit: "{url}", Label: "crawl", Help: "URLs of a crawl admitted for the first time, or by Force."}
	crawlLeases  = Metric{Name: "frontier_crawl_leases_total", OTel: "frontier.crawl.lease.granted", Kind: Counter, Unit: "{lease}", Label: "crawl", Help: "Leases of a crawl."}
)

// immediate is the label of what CrawlNow added, in the place of a priority.
const immediate = "immediate"

// waitBounds are the upper ends of the buckets of a frontier.Histogram, but the last.
func waitBounds() []float64 {
	out := make([]float64, len(frontier.Histogram{}.Buckets)-1)
	for i := range out {
		out[i] = float64(int64(1)<<i) / 1000
	}
	return out
}

// FrontierSource is the Source of a frontier.
type FrontierSource struct {
	f *frontier.Frontier
	o Options
}

// Frontier returns the Source of a frontier. A Read takes Stats once, and describes
// 256 crawls at most; its cost does not depend on the number of hosts and URLs.
func Frontier(f *frontier.Frontier, o Options) *FrontierSource { return &FrontierSource{f, o} }

// Metrics implements Source.
func (x *FrontierSource) Metrics() []*Metric {
	out := []*Metric{&waiting}
	for i := range numbers {
		out = append(out, &numbers[i].Metric)
	}
	return append(out, &outcomes, &waits, &budget, &diskUsed, &diskFree, &crawls, &crawlWaiting, &crawlLeased, &crawlAdded, &crawlLeases)
}

// Read implements Source.
func (x *FrontierSource) Read(to Sink) {
	s := x.f.Stats()
	x.ReadStats(&s, to)
}

// ReadStats is Read for a caller that has taken the frontier's Stats already.
func (x *FrontierSource) ReadStats(s *frontier.Stats, to Sink) {
	for p, n := range s.WaitingBy {
		to.Number(&waiting, strconv.Itoa(p+1), float64(n))
	}
	to.Number(&waiting, immediate, float64(s.Immediate))
	for i := range numbers {
		to.Number(&numbers[i].Metric, "", float64(numbers[i].of(s)))
	}
	for r, n := range s.Done {
		to.Number(&outcomes, word(frontier.Result(r).String()), float64(n))
	}
	rest := s.Waits
	for p := range s.WaitsBy {
		h := &s.WaitsBy[p]
		to.Histogram(&waits, strconv.Itoa(p+1), distribution(h))
		rest.Count, rest.Sum = rest.Count-h.Count, rest.Sum-h.Sum
		for i, n := range h.Buckets {
			rest.Buckets[i] -= n
		}
	}
	to.Histogram(&waits, immediate, distribution(&rest))
	if x.o.MemoryBudget > 0 {
		to.Number(&budget, "", float64(x.o.MemoryBudget))
	}
	if x.o.Disk != nil {
		to.Number(&diskUsed, "", float64(x.o.Disk()))
	}
	if free, ok := durablefs.Free(x.o.Dir); x.o.Dir != "" && ok {
		to.Number(&diskFree, "", float64(free))
	}
	x.readCrawls(to)
}

func (x *FrontierSource) readCrawls(to Sink) {
	look := inspect.New(x.f)
	ids := look.Crawls()
	to.Number(&crawls, "", float64(len(ids)))
	for _, id := range ids[:min(len(ids), maxCrawls)] {
		s, ok := look.Crawl(id)
		if !ok {
			continue // it was forgotten meanwhile
		}
		crawl := strconv.FormatUint(uint64(id), 10)
		to.Number(&crawlWaiting, crawl, float64(s.Waiting))
		to.Number(&crawlLeased, crawl, float64(s.Leased))
		to.Number(&crawlAdded, crawl, float64(s.Added))
		to.Number(&crawlLeases, crawl, float64(s.HandedOut))
	}
}

// distribution is a frontier's histogram.
func distribution(h *frontier.Histogram) *Distribution {
	d := &Distribution{Count: uint64(h.Count), Sum: h.Sum.Seconds(), Counts: make([]uint64, len(h.Buckets))}
	for i, n := range h.Buckets {
		d.Counts[i] = uint64(n)
	}
	return d
}

// word makes a label of a name of several words.
func word(name string) string { return strings.ReplaceAll(name, " ", "_") }
