// This file is what callers do with crawls: they give them weights, pause them
// and ask what has become of them.
//
// A crawl needs no beginning: it is there as soon as an entry names it. What is
// set of it is durable; its counters begin anew with each opening.

package frontier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// MaxCrawlWeight is the highest CrawlSettings.Weight.
const MaxCrawlWeight = 1000

// CrawlSettings is what can be set of a crawl. The zero value is the default.
type CrawlSettings struct {
	// Weight is the crawl's share: while it and others have URLs that may be
	// fetched now, it has Weight of the sum of their weights of the hand-outs,
	// whatever the priorities. 1 to MaxCrawlWeight; zero means 1.
	Weight int
	// Paused holds the crawl's URLs back. Those of other crawls go on, on the same
	// hosts too, and so do leases that are out.
	Paused bool
	// Limits is what the crawl may do, whatever its hosts may.
	Limits Limits
}

// CrawlStats tells about one crawl. What waits for its time is not counted by
// crawl: it lies on disk in order of time.
type CrawlStats struct {
	Settings CrawlSettings
	Used     Used // of Settings.Limits

	Waiting   int64   // URLs that may be handed out as soon as their hosts may be contacted
	WaitingBy []int64 // the same by priority: WaitingBy[p-1] for priority p
	Immediate int64   // of Waiting: those of CrawlNow, which WaitingBy has not
	Leased    int64   // leases out

	// Since Open, or since the crawl was forgotten: see Frontier.CrawlStats.
	Added     int64    // URLs admitted for the first time, or by Force
	HandedOut int64    // leases
	Done      [8]int64 // Done calls by Result, and leases that expired
}

// SetCrawl gives a crawl its settings, instead of those that it had. They are
// durable when SetCrawl returns, and in force for the next hand-out. They may be
// given before the crawl has a URL. Next returns ErrExhausted if nothing but URLs
// of paused crawls is left.
func (f *Frontier) SetCrawl(id uint32, s CrawlSettings) error {
	return f.changeCrawl(id, func(old *CrawlSettings) { *old = s })
}

// changeCrawl changes the settings of a crawl and puts them in force when they are
// durable. Changes that meet each other all count.
func (f *Frontier) changeCrawl(id uint32, change func(*CrawlSettings)) error {
	o := newOp()
	defer o.free()
	if err := f.lockOpen(); err != nil {
		return err
	}
	old := f.latestCrawlLocked(id)
	s := old
	change(&s)
	if err := s.check(); err != nil {
		f.mu.Unlock()
		return fmt.Errorf("frontier: set crawl %d: %w", id, err)
	}
	s.Weight = max(1, s.Weight)
	o.rows = append(o.rows, crawlRow(id, s))
	if s.Limits == (Limits{}) && old.Limits != (Limits{}) {
		o.rows = append(o.rows, Row{Key: crawlUseKey(id)})
	}
	if x := f.core.findCrawl(id); x != nil {
		f.core.endPeriod(x.use, &x.settings.Limits, f.token, f.core.date(f.last)) // with what may change it
	}
	f.crawlChanges.begin(id, s)
	o.rule = func() {
		f.crawlChanges.end(id)
		f.core.setCrawl(id, s, f.token, f.last)
	}
	o.unrule = func() { f.crawlChanges.end(id) }
	if err := f.submitLocked(o); err != nil { // unlocks
		return err
	}
	if s.Paused {
		f.freePaused(id)
	}
	return nil
}

func (s *CrawlSettings) check() error {
	err := s.Limits.check("Limits")
	if s.Weight < 0 || s.Weight > MaxCrawlWeight {
		err = errors.Join(fmt.Errorf("%s is %d; want 0 to %d", "Weight", s.Weight, MaxCrawlWeight), err)
	}
	return err
}

// latestCrawlLocked is what is set of a crawl as of the last change that was
// submitted: the next one starts from there.
func (f *Frontier) latestCrawlLocked(id uint32) CrawlSettings {
	if p := f.crawlChanges[id]; p != nil {
		return p.latest
	}
	if x := f.core.findCrawl(id); x != nil {
		return x.settings
	}
	return CrawlSettings{Weight: 1}
}

// crawlChanges holds, by crawl, the settings that are on their way to the store. If
// one change fails, so do those that were submitted after it.
type crawlChanges map[uint32]*pendingCrawl

type pendingCrawl struct {
	latest  CrawlSettings
	changes int
}

func (p crawlChanges) begin(id uint32, s CrawlSettings) {
	if p[id] == nil {
		p[id] = &pendingCrawl{}
	}
	p[id].latest = s
	p[id].changes++
}

func (p crawlChanges) end(id uint32) {
	if p[id].changes--; p[id].changes == 0 {
		delete(p, id)
	}
}

// freePaused takes the hosts out of the ready lists of a crawl that was paused
// which have nothing else to offer: they may hold slots of groups.
func (f *Frontier) freePaused(id uint32) {
	for level := 1; level <= f.opts.Priorities+1; level++ {
		for left, first := 0, true; first || left > 0; first = false {
			f.lock()
			x := f.core.findCrawl(id)
			if x == nil || x.runs() || f.closed {
				f.mu.Unlock()
				return
			}
			l := &x.lists[readies].at[level]
			if first {
				left = l.n // later ones are looked at when they come
			}
			f.core.regroup(l, min(left, sweepAtOnce), f.last)
			left -= sweepAtOnce
			f.dispatchLocked()
			f.mu.Unlock()
		}
	}
}

// CrawlStats tells about a crawl, and whether anything is known of it. A crawl
// that has default settings, and no host in memory that had a URL of it, may be
// forgotten; the last 256 of them are not.
func (f *Frontier) CrawlStats(id uint32) (CrawlStats, bool) {
	f.lock()
	defer f.mu.Unlock()
	c := f.core
	c.advance(f.nowLocked())
	f.wakeReaderLocked()
	x := c.findCrawl(id)
	if x == nil {
		return CrawlStats{}, false
	}
	s := x.stats
	s.Settings, s.WaitingBy = x.settings, slices.Clone(s.WaitingBy)
	s.Used = f.usedLocked(x.use, &x.settings.Limits)
	return s, id != 0 || x.queues > 0 || s.Added > 0 || !x.nothing()
}

// Crawls returns the numbers of the crawls of which CrawlStats knows anything,
// in ascending order.
func (f *Frontier) Crawls() []uint32 {
	_, zero := f.CrawlStats(0)
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(f.core.crawlSlots))
	f.mu.Unlock()
	if zero {
		ids = append(ids, 0)
	}
	slices.Sort(ids)
	return ids
}

// Tags of what the row of a crawl says. Each is followed by a varint; what is not
// there is as by default.
const (
	crawlWeight = 'w'
	crawlPause  = 'p' // 1
)

// crawlLimit has the tags of limits, by their tags in a row of limits.
var crawlLimit = [...]byte{limitWaiting: 'q', limitServed: 's', limitBytes: 'b', limitErrors: 'e', limitDepth: 'd', limitPeriod: 't'}

// crawlRow encodes a crawl's settings for the store.
func crawlRow(id uint32, s CrawlSettings) Row {
	row := Row{Key: string(binary.BigEndian.AppendUint32([]byte(rowCrawl), id))}
	if s.Weight != 1 {
		row.Value = binary.AppendUvarint(append(row.Value, crawlWeight), uint64(s.Weight))
	}
	if s.Paused {
		row.Value = binary.AppendUvarint(append(row.Value, crawlPause), 1)
	}
	limits := appendLimits(nil, &s.Limits)
	_ = readFields(limits, func(tag int, x uint64) error {
		row.Value = binary.AppendUvarint(append(row.Value, crawlLimit[tag]), x)
		return nil
	}, nil) // we encoded it
	return row
}

// decodeCrawl is the inverse of crawlRow.
func decodeCrawl(name string, v []byte) (id uint32, s CrawlSettings, err error) {
	var limits []byte
	s.Weight = 1
	if len(name) != 4 {
		return 0, s, errRow
	}
	for len(v) > 0 {
		x, n := binary.Uvarint(v[1:])
		if n <= 0 {
			return 0, s, errRow
		}
		switch {
		case v[0] == crawlWeight && x >= 1 && x <= MaxCrawlWeight:
			s.Weight = int(x)
		case v[0] == crawlPause && x == 1:
			s.Paused = true
		case v[0] == crawlWeight || v[0] == crawlPause:
			return 0, s, errRow
		default:
			tag := bytes.IndexByte(crawlLimit[:], v[0])
			if tag <= 0 {
				if err := unknown(int(v[0])); err != nil {
					return 0, s, err
				}
				break
			}
			if x == 0 {
				return 0, s, errRow
			}
			limits = appendNumber(limits, tag, x)
		}
		v = v[1+n:]
	}
	if len(limits) > 0 {
		if err := readLimits(limits, &s.Limits); err != nil {
			return 0, s, err
		}
	}
	return binary.BigEndian.Uint32([]byte(name)), s, nil
}
