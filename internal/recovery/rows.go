// This file reads rows: hosts and groups, what operators said, and what is under way. It notes those that are
// of no use.

package recovery

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	rowsAtOnce = 4096    // rows in one batch
	maxStale   = 4 << 20 // bytes of keys of rows that one opening deletes
)

// Row takes a row.
func (r *Recovery) Row(key string, value []byte) error {
	if len(key) < 2 {
		return nil // row.MetaKey, or not ours to judge
	}
	if key == row.SumKey {
		r.Counted = true
		return nil
	}
	switch kind, name := key[:2], key[2:]; kind {
	case row.RuleKey:
		return r.rule(key, value)
	case row.GroupKey:
		g, err := row.ParseGroup(name, value)
		if err != nil {
			return err
		}
		r.group(name, &g)
	case row.CrawlKey:
		x, err := row.ParseCrawl(name, value)
		if err != nil {
			return err
		}
		r.Core.SetCrawl(x.ID, x.CrawlSettings, 0, 0)
	case row.UsageKey:
		return r.usage(key, value)
	case row.DeletionKey:
		return r.deletion(key, value)
	case row.ForgetKey:
		x, err := row.ParseForgotten(key, value)
		if err != nil {
			return err
		}
		r.Forgotten.Put(&x)
	case row.OutdatedKey:
		x, err := row.ParseOutdated(key, value)
		if err != nil {
			return err
		}
		r.Notes.Set(x.Mark, x.Seq, x.Block)
	case row.AgainKey:
		return r.again(key, value)
	case row.HintKey:
		m, h, err := hint.Parse(key, value)
		if err != nil {
			return err
		}
		r.Hints.Add(m, h, 0, math.MaxInt64)
	case row.SumKey:
		crawl, sum, err := row.ParseCountSum(key, value)
		if err != nil || !r.Counts {
			return err
		}
		r.Core.Counts.SetSum(crawl, sum)
	case row.HostKey:
		s, err := row.ParseHost(name, value)
		if err != nil {
			return err
		}
		r.host(name, s)
	}
	return nil
}

// rule puts a stored rule in force. A block that has passed is not set any more.
func (r *Recovery) rule(key string, value []byte) error {
	scope, stored, err := row.ParseRule(key[len(row.RuleKey):], value)
	if err != nil {
		return err
	}
	if !r.Controls.Restore(scope, stored, 0, 0) {
		r.obsolete(key)
	}
	return nil
}

// usage restores what a scope or crawl has used. Its limits were met before.
func (r *Recovery) usage(key string, value []byte) error {
	s, err := row.ParseUsage(key, value)
	if err != nil {
		return err
	}
	of, err := limit.ParseRowKey(key)
	if err != nil {
		return row.Malformed(key)
	}
	if !r.Core.Limits.Restore(of, s, 0) {
		r.obsolete(key)
	}
	return nil
}

// deletion restores a deletion.
func (r *Recovery) deletion(key string, value []byte) error {
	parsed, err := row.ParseDeletion(key, value)
	if err != nil {
		return err
	}
	last := min(parsed.Block, r.Core.Blocks.Last()) // higher numbers are given once more
	r.Core.Deletions.Enact(tombstone.NewDeletion(parsed), last, r.Last, true)
	r.Seq = max(r.Seq, parsed.Seq)
	return nil
}

// again notes what a record comes again as.
func (r *Recovery) again(key string, value []byte) error {
	a, err := row.ParseAgain(key, value)
	if err != nil {
		return err
	}
	err = hostkey.Check(a.Host)
	if err == nil {
		_, err = record.Decode([]byte(a.Body))
	}
	if err != nil {
		return &storage.CorruptError{Err: err}
	}
	if !r.Core.IsPriority(a.Priority) {
		return r.tooHigh(a.Priority)
	}
	r.Again = append(r.Again, a)
	return nil
}

// host restores a host that has URLs from its row. Other hosts stay on disk, unless the
// row is obsolete.
func (r *Recovery) host(name string, s row.Host) {
	c := r.Core
	hash := c.HashOf(name)
	id := c.Lookup(hash, name)
	if id == 0 && s.CrawlDelay == 0 && !s.Assigned && s.Standing == 0 && r.moment(s.Due) <= 0 && !c.TroubleKept(&s, 0, 0) {
		if s.Used == (row.Usage{}) {
			r.obsolete(row.HostKey + name)
			return
		}
		if len(r.counted) < maxStale/64 { // rules come later
			r.counted = append(r.counted, countedHost{name, s.Used})
		}
	}
	c.Dormant.HasRow(hash)
	if id != 0 {
		c.Remember(id, &s, 0, 0)
	}
}

// countedHost is a host that is on disk only, and can be forgotten unless it has used
// something in a period that has not ended.
type countedHost struct {
	name string
	used row.Usage
}

func (r *Recovery) group(name string, g *row.Group) {
	c := r.Core
	set := *g
	set.Due = 0
	if set != (row.Group{}) {
		r.Controls.SetGroup(name, set)
	}
	at := min(r.moment(g.Due), int64(row.MaxDelay))
	if g.Due == 0 || at <= 0 || c.GroupStartsAt != nil && at <= c.GroupStartsAt(nil) {
		if set == (row.Group{}) {
			r.groups = append(r.groups, name)
		}
		return
	}
	c.PostponeGroup(c.GroupOf(name), at)
}

// obsolete notes a row to delete. Beyond a bound they are left for the next opening.
func (r *Recovery) obsolete(key string) {
	if len(r.stale) < maxStale {
		r.stale = append(binary.AppendUvarint(r.stale, uint64(len(key))), key...)
	}
}

// Stale yields batches of rows that delete what is of no use any more.
func (r *Recovery) Stale() iter.Seq[[]storage.Row] {
	for _, name := range r.groups {
		if r.Core.GroupNamed(name) == 0 {
			r.obsolete(row.GroupKey + name)
		}
	}
	for i := range r.counted {
		if h := &r.counted[i]; !r.Core.Limits.Counts(h.name, h.used, 0) {
			r.obsolete(row.HostKey + h.name)
		}
	}
	r.groups, r.counted = nil, nil
	return func(yield func([]storage.Row) bool) {
		for len(r.stale) > 0 {
			var rows []storage.Row
			for len(r.stale) > 0 && len(rows) < rowsAtOnce {
				n, k := binary.Uvarint(r.stale)
				end := k + int(n)
				rows = append(rows, storage.Row{Key: string(r.stale[k:end])})
				r.stale = r.stale[end:]
			}
			if !yield(rows) {
				return
			}
		}
	}
}
