// This file holds what goes into a frontier and what comes out of it.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/attrs"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/record"
)

// Limits of an Entry. Longer ones are refused with an EntryError.
const (
	MaxURL  = 64 << 10 // bytes of Entry.URL
	MaxMeta = 64 << 10 // bytes of Entry.Meta
)

// Entry is a URL to be visited.
type Entry struct {
	// URL must be absolute, with a host, unless Host is set. Two spellings are two URLs, unless
	// Options.Normalize brings them to one form.
	URL string
	// Host is the key of the host to which politeness is owed for the URL. Empty means the key that
	// Options.HostKey returns. With a Host, URL may be any 1 to MaxURL bytes; it is taken as it is,
	// unless there is an Options.Normalize. The key is spelled as in scope.Host. The URL keeps it for all
	// tries and visits, and leases, views and exports return it. A URL is one URL of its crawl,
	// whatever its Host: it is known under any. Force must name the Host under which the URL waits:
	// under another one it does not find the URL, which then comes twice.
	Host string
	// Depth is the number of links from a seed; 0 is a seed. A link in Outcome.Add that has
	// none gets its page's and 1 more, unless AsIs is set.
	Depth int
	// Weight is the page's quality, for the prioritizer; the scale is the caller's, and NaN counts as 0.
	Weight float64
	// NotBefore is when the URL becomes available; zero or past means now.
	NotBefore time.Time
	// Meta travels with the URL to its leases. Add copies it.
	Meta []byte
	// Crawl is the number of the crawl that the URL belongs to; 0 by default. A URL is known per crawl.
	// See Crawl. A link in Outcome.Add with 0 belongs to its page's crawl, unless AsIs is set.
	Crawl uint32
	// AsIs says that an Entry in Outcome.Add inherits nothing from its page: Crawl 0 is the
	// crawl 0, and Depth 0 is a seed's, as in Add.
	AsIs bool
	// Force admits the URL even if it is known. A waiting URL moves to the tail of its
	// new priority, with the new Meta; a leased one comes again after its Done, or
	// after that of a later lease if this one is lost in a crash. To find a waiting URL the frontier reads everything that waits for its host. A scheduled URL
	// that is on disk is superseded; until its record is read, Stats may count it and
	// Next may wait for it.
	Force bool
	// Hint marks an Entry as a hint that its URL, if known and scheduled, may be visited earlier or has
	// become more important: see Hinter. Among several hints, a Hinter gets the latest NotBefore;
	// without a Hinter the earliest applies. A URL that waits rises if a hint has a Weight, and the
	// Prioritizer gives a higher priority to the URL with the greater Weight and the lesser Depth, or
	// to the hint itself if the URL was never visited. That is noted as by a Riser: in memory, until
	// its host has enough notes. An unknown URL is admitted as without Hint; one that is leased or done
	// does not change. Hints are durable with their Add and applied later in batches: at once while few
	// URLs are scheduled, otherwise in walks through all scheduled URLs that take at most a tenth of
	// the time. Once hints use MemoryBudget/64, further ones are refused with ErrHints. An Export does
	// not contain hints. Options.NoDedup ignores them.
	Hint bool
	// Finished admits the URL as done: it is known and kept (Options.Keep), and is not
	// handed out. With Force a known URL ends that way, whether it waits or is scheduled;
	// a leased one does after its Done. NotBefore is ignored. Without Keep, with Hint and
	// in CrawlNow a finished entry is refused. An Inspector sets it for finished URLs.
	Finished bool
}

// History is the record of a URL's earlier visits. The zero value is that of a URL never
// visited or tried. Times have millisecond precision.
type History struct {
	Visits       int       // visits that reached the page
	Changes      int       // visits that found it changed
	FirstVisit   time.Time // end of the first visit
	LastVisit    time.Time // end of the last visit
	LastChange   time.Time // end of the last visit that found a change
	LastModified time.Time // what the server said last
	Last         Result    // of the last Done that was not Requeue or PutOff
	State        State     // what the Scheduler stores with the URL
}

// State is what a Scheduler stores with a URL. Its meaning is opaque to the frontier. The
// zero value means that nothing is stored.
type State [12]byte

// Lease is the right to contact one host, until its deadline. It is a value:
// pass it by value, and call Done with it once.
type Lease struct {
	Entry    Entry     // only Crawl is set if the lease is for contact only
	Host     string    // host key
	Group    string    // the host's group; empty if it has none
	Priority int       // the front queue it came from, or Immediate; 0 for contact only
	Attempt  int       // 1 for the first try
	History  History   // of earlier visits
	LeasedAt time.Time // when it was handed out
	Due      time.Time // when the host's own clocks allowed this contact; zero: they were not running
	Deadline time.Time // when the right to contact ends; fetch under a context that ends here
	// Gap is the least time between the contacts of a bundle, from the end of one to the next (Take);
	// zero: the lease is alone. A DelayPolicy that looks at the outcome may ask for more.
	Gap    time.Duration
	token  uint64 // never repeats, across restarts too
	record uint32 // number of the lease record
	bundle uint32 // that it belonged to when it was handed out or found; 0: none
	moment int64  // when it was handed out
	tail   string // of its ID, by a router of fleet/route
}

// Token returns a number that no other lease of this store has had or will have.
func (l Lease) Token() uint64 { return l.token }

// SharesContact reports whether both leases are of one bundle of Take. Leases of different
// frontiers must not be compared.
func (l Lease) SharesContact(m Lease) bool {
	return l.bundle != 0 && l.bundle == m.bundle && l.Host == m.Host
}

// ContactOnly reports whether the lease is for a host's slot without a URL, from Contact or HandBack.
func (l Lease) ContactOnly() bool { return l.token != 0 && l.Entry.URL == "" }

// Result says how a visit ended. The zero value is Visited.
type Result uint8

const (
	Visited   Result = iota // the page was read; whether it changed is unknown
	Changed                 // the page was read and differs from the last visit
	Unchanged               // the page was read, or a conditional request said so
	Gone                    // 404 or 410: it is not there any more
	Failed                  // connection, timeout, 5xx, 429: to be tried again
	Denied                  // robots.txt or a filter forbids it
	Requeue                 // not tried: back to the head of its queue, same attempt
	PutOff                  // not tried: to come again at Outcome.Next, same attempt, in another crawl with Outcome.Move
)

// String returns the result's name in lower case.
func (r Result) String() string {
	names := [...]string{"visited", "changed", "unchanged", "gone", "failed", "denied", "requeue", "put off"}
	if int(r) < len(names) {
		return names[r]
	}
	return "invalid result"
}

// Outcome reports to Done how a lease ended. The zero value is a visit that reached the
// page, ended now, and took as long as the lease was out.
type Outcome struct {
	Result Result
	// Failure is the kind of failure if Result is Failed. With other results it must be zero.
	Failure Failure
	// Uncontacted says that no byte was sent to the host under this lease, so that its
	// clock need not move. Leave it false when in doubt. It is valid with Denied and
	// Requeue, and implied by PutOff; with other results Done returns an error.
	Uncontacted bool
	// Ended is when the contact ended. Zero means now; so does a time before the lease
	// began or after now, which must come from another clock.
	Ended time.Time
	// Duration is how long the fetch took; zero or less means since the lease began.
	Duration time.Duration
	// RetryAfter is how long the host asked to be left alone, from Ended. It applies even
	// if Uncontacted is set. Done refuses one of less than a microsecond: 3 is not
	// 3*time.Second. Round what is left until a date up.
	RetryAfter time.Duration
	// CrawlDelay, if positive, is from now on the least delay of this host
	// (robots.txt's Crawl-delay); NoCrawlDelay forgets it; 0 changes nothing. Done refuses
	// one of less than a millisecond: 10 is not 10*time.Second. Raise what a robots.txt
	// asks for, which may be any fraction of a second, to a millisecond.
	CrawlDelay time.Duration
	// Modified is the page's Last-Modified; zero if unknown.
	Modified time.Time
	// Bytes is the size of what was transferred. Less than 0 counts as 0.
	Bytes int64
	// Meta replaces the URL's Meta if it stays in the frontier; nil keeps it.
	Meta []byte
	// Next is when to visit the URL again. If it has passed, that is as soon as the host
	// allows. Zero leaves the choice to the retry policy (Failed) or to the Scheduler,
	// which are not asked otherwise. PutOff requires a Next, and Requeue must not have one.
	Next time.Time
	// Move lets a URL that is PutOff come again in the crawl numbered Crawl, with all
	// that is known about it, whether or not that crawl knows the URL. It stays known in
	// its former crawl. Neither field is valid with other results.
	Move  bool
	Crawl uint32
	// Add are the page's outlinks, admitted in the same commit (known ones with
	// Force right after it). They inherit the page's crawl, and its depth plus 1, unless
	// they say otherwise (Entry.Crawl, Depth, AsIs). Links into a crawl that was deleted with
	// Forget while the page was fetched are refused.
	Add []Entry
}

// NoCrawlDelay in Outcome.CrawlDelay forgets the host's crawl delay.
const NoCrawlDelay time.Duration = -1

// historyOf is what a record keeps of the earlier visits of its URL.
func historyOf(h *record.History) History {
	return History{
		Visits: h.Visits, Changes: h.Changes,
		FirstVisit: instant.FromMillis(h.FirstVisit), LastVisit: instant.FromMillis(h.LastVisit),
		LastChange: instant.FromMillis(h.LastChange), LastModified: instant.FromMillis(h.LastModified),
		Last: Result(h.Last), State: h.State,
	}
}

// kept is what a record keeps of h.
func (h *History) kept() record.History {
	return record.History{
		Visits: h.Visits, Changes: h.Changes,
		FirstVisit: instant.Millis(h.FirstVisit), LastVisit: instant.Millis(h.LastVisit),
		LastChange: instant.Millis(h.LastChange), LastModified: instant.Millis(h.LastModified),
		Last: byte(h.Last), State: h.State,
	}
}

// Results after Denied are not kept.
var _ [record.MaxLast]struct{} = [Denied]struct{}{}

// link is an outlink with what it inherits from its page.
func (l *Lease) link(e *Entry) Entry {
	x := *e
	if l.Entry.URL == "" { // there is no page
		return x
	}
	x.Crawl = cmp.Or(x.Crawl, l.Entry.Crawl)
	x.Depth = cmp.Or(x.Depth, l.Entry.Depth+1)
	return x
}

// HostName is the default host key: the host of an absolute URL, in lower case, without user, port,
// brackets and final dots. Politeness is owed to the machine, so http and https, and all ports, are one
// host, and so are all spellings of a name that net/http resolves to one: an internationalized name has
// the key of its ASCII form, xn--bcher-kva.example for bücher.example, and an IPv6 address that stands
// for an IPv4 address has the key of that one. An IPv4 address may be spelled as the URL standard
// allows, as browsers and the C library do: 2130706433, 0x7f.1 and 0177.0.0.1 are 127.0.0.1. It refuses
// URLs without a scheme or a host, with a malformed host or port, with a host that has an empty label,
// as in example..org, and with blanks or control characters anywhere.
func HostName(rawURL string) (string, error) { return hostkey.Of(rawURL) }

// hostOf returns the key of the host that an entry names, or that its URL belongs to.
func (s *shared) hostOf(e *Entry) (host string, err error) {
	if e.Host != "" {
		if host, err = s.hostKey(e.Host); err != nil {
			err = &mistakeError{err: err}
		}
		return host, err
	}
	if host, err = s.opts.HostKey(e.URL); err == nil {
		if err = hostkey.Check(host); err != nil && s.ownKeys {
			err = &mistakeError{err: fmt.Errorf("Options.HostKey: %w", err), code: true}
		}
	}
	if err != nil && !hostkey.HasScheme(e.URL) {
		err = &mistakeError{err: fmt.Errorf("%w: resolve links against the URL of their page", err)}
	}
	return host, err
}

// HostKey returns the key of the host that a URL belongs to, as Options.HostKey names it.
func (f *Frontier) HostKey(url string) (string, error) { return f.opts.HostKey(url) }

// after is the history with one more try.
func (h History) after(o Outcome) History {
	if o.Result < Requeue {
		h.Last = o.Result
	}
	if o.Result > Gone {
		return h
	}
	end := instant.FromMillis(instant.Millis(o.Ended))
	if h.Visits == 0 {
		h.FirstVisit = end
	}
	h.Visits++
	h.LastVisit = end
	if o.Result == Changed {
		h.Changes++
		h.LastChange = end
	}
	if !o.Modified.IsZero() {
		h.LastModified = o.Modified
	}
	return h
}

// Verdict is what became of an entry.
type Verdict uint8

const (
	EntryNew     Verdict = iota // the URL was unknown, and is admitted
	EntryKnown                  // it was known, and nothing changed
	EntryForced                 // it was known, and is admitted again: see Entry.Force
	EntryHinted                 // it was known, and the hint is kept: see Entry.Hint
	EntryRefused                // the entry is valid, but a limit, a full memory or another error refused it
	EntryBad                    // the entry is malformed
)

var verdictNames = [...]string{"new", "known", "forced", "hinted", "refused", "bad"}

// String returns the verdict's name in lower case. It does not change between versions.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "invalid verdict"
}

// AddVerdicts is Add, but returns a verdict for each entry, in their order. The error has an
// *EntryError for each that is EntryRefused or EntryBad. If there is another error no entry was
// admitted, and the verdicts are nil.
//
// Of several equal URLs in one call the first is EntryNew and the others are EntryKnown, even if a
// limit refused the first.
func (f *Frontier) AddVerdicts(ctx context.Context, entries ...Entry) ([]Verdict, error) {
	vs := make([]Verdict, len(entries))
	admitted, _, err := f.addAs(ctx, entries, 0, vs)
	if !admitted {
		return nil, err
	}
	return vs, err
}

// verdict notes what became of the entry of a call with an index, if its caller wants to
// know. A URL's own next record has no index.
func (o *op) verdict(index int, v Verdict) {
	if o.verdicts != nil && index >= 0 {
		o.verdicts[index] = v
	}
}

// refuse notes that an entry of the call was not admitted.
func (o *op) refuse(index int, v Verdict, err *EntryError) {
	o.refused = append(o.refused, err)
	o.verdict(index, v)
}

// refuseLinks drops the outlinks of a completion.
func (o *op) refuseLinks() {
	for i := range o.Entries {
		o.verdict(o.Entries[i].Index, EntryRefused)
	}
	o.Entries = o.Entries[:0]
}

// verdictsOfForced notes what became of known entries that were to be forced.
func (o *op) verdictsOfForced(known []ledger.Entry, bad []*EntryError) {
	for i := range known {
		o.verdict(known[i].Index, EntryForced)
	}
	for _, e := range bad {
		o.verdict(e.Index, EntryRefused)
	}
}

// refused counts entries of an Add that were refused, and joins them to its error.
func (s *shard) refused(bad []*EntryError, err error) error {
	s.mu.Lock()
	s.core.Stats.Refused += int64(len(bad))
	s.mu.Unlock()
	return joined(bad, err)
}

// joined is errors.Join of entry errors and of another one.
func joined(bad []*EntryError, err error) error {
	errs := make([]error, len(bad), len(bad)+1)
	for i, e := range bad {
		errs[i] = e
	}
	return errors.Join(append(errs, err)...)
}

// refusedEvery is the least time between two events about refused outlinks: most pages may have one.
const refusedEvery = time.Minute

// linksRefusedLocked counts outlinks of a page that were refused, and reports them, with those since
// the last report. What limits refuse is only counted: it is as the operator wants.
func (s *shard) linksRefusedLocked(l *Lease, bad []*EntryError) {
	s.core.Stats.Refused += int64(len(bad))
	slices.SortFunc(bad, func(a, b *EntryError) int { return cmp.Compare(a.Index, b.Index) })
	var first error
	for _, e := range bad {
		if errors.Is(e.Err, ErrLimit) {
			continue
		}
		if s.badLinks.count++; first == nil {
			first = &EntryError{Index: e.Index, URL: attrs.URL(e.URL), Err: e.Err}
		}
	}
	if first == nil || s.last < s.badLinks.next {
		return
	}
	s.emitLocked(event.Event{Kind: event.LinksRefused, Host: l.Host, URL: l.Entry.URL, Crawl: l.Entry.Crawl, Count: s.badLinks.count, Err: first})
	s.badLinks.count, s.badLinks.next = 0, s.last+int64(refusedEvery)
}
