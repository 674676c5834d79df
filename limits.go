// This file is what may be said about how much: of URLs that wait, hand-outs,
// bytes, failures and depth, for a scope, for each of its hosts, and for a crawl.
//
// Limits of URLs that wait and of depth refuse entries when they are added
// (limitadd.go). What is used of the others is counted (limitbook.go); hosts and
// crawls that have used it up are held back like paused ones.

package frontier

import (
	"errors"
	"fmt"
	"time"
)

// Limits bound what may be done. Zero fields do not.
//
// There are two kinds. Rule.Limits is what the hosts of a scope may do together;
// all scopes that contain a host count, not only the most specific. Rule.HostLimits
// is what each host of a scope may do alone; of these the most specific counts, as a
// whole: a host is freed of what a wider scope says by limits that are never
// reached. CrawlSettings.Limits is what a crawl may do.
//
// A period begins with the first hand-out, byte or failure that counts after the
// end of the one before, with counts of zero. Limits may be lower than what is used
// already: they are reached then. While a scope, host or crawl has no Limits nothing
// is counted for it, and what was counted before may be forgotten.
type Limits struct {
	// Waiting is how many URLs may wait: Add refuses more. Leased and scheduled
	// ones do not count, nor are entries refused whose time is to come: those that
	// come due, fail or are handed back always have room.
	Waiting int64
	// Served is how many URLs may be handed out. One that comes back uncontacted
	// does not count.
	Served int64
	// Bytes is how much may be transferred (Outcome.Bytes). It is counted when a
	// lease ends, so that leases which are out then may exceed it.
	Bytes int64
	// Errors is how many contacts may fail: Done with Failed, and leases that
	// expire. They are counted as bytes are.
	Errors int64
	// Depth is the greatest Entry.Depth that Add admits.
	Depth int
	// Period is after which time Served, Bytes and Errors are counted from zero
	// again. Zero: never. From 1 ms to 100 years.
	Period time.Duration
}

// Used is what was counted for limits since the present period began.
type Used struct {
	Served, Bytes, Errors int64
	Since                 time.Time // when it began; zero: nothing was counted
	Until                 time.Time // when it ends; zero: never, or nothing was counted
}

// ErrLimit is wrapped by the *EntryErrors of entries that Limits.Waiting or
// Limits.Depth refused. Such a URL is not known: it may be added later.
var ErrLimit = errors.New("limit reached")

// SetLimits says what the hosts of a scope may do together; zero Limits take that
// back. It is durable and in force when it returns. Hosts that may not be served
// because of it go on as soon as a higher limit, Clear, or a new period lets them.
// Entry.Force, CrawlNow and Import are never refused.
func (f *Frontier) SetLimits(s Scope, l Limits) error {
	return f.changeRule("set limits", s, func(r *Rule) { r.Limits = l })
}

// SetHostLimits is SetLimits for what each host of a scope may do alone.
func (f *Frontier) SetHostLimits(s Scope, l Limits) error {
	return f.changeRule("set host limits", s, func(r *Rule) { r.HostLimits = l })
}

// SetCrawlLimits is SetLimits for a crawl. The other settings of the crawl stay. A
// crawl that has reached one is not chosen for hand-outs.
func (f *Frontier) SetCrawlLimits(id uint32, l Limits) error {
	return f.changeCrawl(id, func(s *CrawlSettings) { s.Limits = l })
}

// Used tells what was counted for the Limits of exactly this scope; false if it has
// none. HostInfo and CrawlStats tell it of hosts and crawls.
func (f *Frontier) Used(s Scope) (Used, bool) {
	s = f.scopeSeen(s)
	f.lookLocked()
	defer f.mu.Unlock()
	r, ok := f.controls.rule(s.ruleKey())
	if !ok || r.use == nil {
		return Used{}, false
	}
	return f.usedLocked(r.use, &r.Limits), true
}

func (f *Frontier) usedLocked(u *usage, l *Limits) Used {
	if u == nil || u.over(l, f.core.date(f.last)) || !u.begun {
		return Used{}
	}
	out := Used{Served: u.served, Bytes: u.bytes, Errors: u.errors, Since: f.day(u.since)}
	if l.Period > 0 {
		out.Until = f.day(u.since + int64(l.Period))
	}
	return out
}

// check says what is wrong with limits.
func (l *Limits) check(name string) error {
	var errs []error
	for _, x := range [...]struct {
		field string
		n     int64
	}{{"Waiting", l.Waiting}, {"Served", l.Served}, {"Bytes", l.Bytes}, {"Errors", l.Errors}, {"Depth", int64(l.Depth)}} {
		if x.n < 0 {
			errs = append(errs, fmt.Errorf("%s.%s is %d; want >= 0", name, x.field, x.n))
		}
	}
	if p := l.Period; p != 0 && (p < time.Millisecond || p > maxBlock) {
		errs = append(errs, fmt.Errorf("%s.Period is %v; want 1ms to %v, or 0", name, p, maxBlock))
	}
	return errors.Join(errs...)
}

// Fields of stored Limits.
const (
	limitWaiting = iota + 1
	limitServed
	limitBytes
	limitErrors
	limitDepth
	limitPeriod // nanoseconds
)

func appendLimits(b []byte, l *Limits) []byte {
	b = appendNumber(b, limitWaiting, uint64(l.Waiting))
	b = appendNumber(b, limitServed, uint64(l.Served))
	b = appendNumber(b, limitBytes, uint64(l.Bytes))
	b = appendNumber(b, limitErrors, uint64(l.Errors))
	b = appendNumber(b, limitDepth, uint64(l.Depth))
	return appendNumber(b, limitPeriod, uint64(l.Period))
}

// readLimits is the inverse of appendLimits.
func readLimits(b []byte, l *Limits) error {
	err := readFields(b, func(tag int, x uint64) error {
		switch tag {
		case limitWaiting:
			l.Waiting = int64(x)
		case limitServed:
			l.Served = int64(x)
		case limitBytes:
			l.Bytes = int64(x)
		case limitErrors:
			l.Errors = int64(x)
		case limitDepth:
			l.Depth = int(x)
		case limitPeriod:
			l.Period = time.Duration(x)
		default:
			return unknown(tag)
		}
		return nil
	}, noText)
	if err != nil {
		return err
	}
	if *l == (Limits{}) || l.check("") != nil {
		return errRow
	}
	return nil
}
