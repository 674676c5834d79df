// This file says of each entry of an Add what became of it.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

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
	for i := range o.entries {
		o.verdict(o.entries[i].index, EntryRefused)
	}
	o.entries = o.entries[:0]
}

// verdictsOfForced notes what became of known entries that were to be forced.
func (o *op) verdictsOfForced(known []newEntry, bad []*EntryError) {
	for i := range known {
		o.verdict(known[i].index, EntryForced)
	}
	for _, e := range bad {
		o.verdict(e.Index, EntryRefused)
	}
}

// refused counts entries of an Add that were refused, and joins them to its error.
func (s *shard) refused(bad []*EntryError, err error) error {
	s.mu.Lock()
	s.sched.stats.Refused += int64(len(bad))
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

// refusedEvery is the least time between two events about refused outlinks: most pages may
// have one.
const refusedEvery = time.Minute

// linksRefusedLocked counts outlinks of a page that were refused, and reports them, with
// those since the last report. What limits refuse is only counted: it is as the operator
// wants.
func (s *shard) linksRefusedLocked(l *Lease, bad []*EntryError) {
	s.sched.stats.Refused += int64(len(bad))
	slices.SortFunc(bad, func(a, b *EntryError) int { return cmp.Compare(a.Index, b.Index) })
	var first error
	for _, e := range bad {
		if errors.Is(e.Err, ErrLimit) {
			continue
		}
		if s.badLinks.count++; first == nil {
			first = &EntryError{Index: e.Index, URL: shown(e.URL), Err: e.Err}
		}
	}
	if first == nil || s.last < s.badLinks.next {
		return
	}
	s.emitLocked(Event{Kind: EventLinksRefused, Host: l.Host, URL: l.Entry.URL, Crawl: l.Entry.Crawl, Count: s.badLinks.count, Err: first})
	s.badLinks.count, s.badLinks.next = 0, s.last+int64(refusedEvery)
}
