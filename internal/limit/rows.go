package limit

import (
	"encoding/binary"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// Scopes and crawls have rows, written with the commits that change them, at most once per commit.
// The use of hosts is in the hosts' rows.
const (
	scopeRow = 'r'
	crawlRow = 'c'
)

// RowKey returns the key of the row with the use of a scope or crawl.
func (of Subject) RowKey() string {
	if of.Kind == Crawl {
		return string(binary.BigEndian.AppendUint32([]byte(row.UsageKey+string(crawlRow)), of.Crawl))
	}
	return row.UsageKey + string(scopeRow) + of.Scope.Key()
}

// ParseRowKey is the inverse of RowKey.
func ParseRowKey(key string) (of Subject, err error) {
	name := key[len(row.UsageKey):]
	switch {
	case len(name) > 0 && name[0] == scopeRow:
		s, err := row.ScopeOf(name[1:])
		return OfScope(s), err
	case len(name) == 5 && name[0] == crawlRow:
		return OfCrawl(binary.BigEndian.Uint32([]byte(name[1:]))), nil
	}
	return of, row.ErrMalformed
}

// markDirty notes that the row of a usage is out of date.
func (b *Book) markDirty(u *usage) {
	if u.key != "" && !u.dirty && b.stored {
		u.dirty = true
		b.dirty = append(b.dirty, u)
	}
}

// Dirty reports whether rows are out of date.
func (b *Book) Dirty() bool { return len(b.dirty) > 0 }

// Rows returns the rows that are out of date. Saved must follow.
func (b *Book) Rows() (rows []storage.Row) {
	if b == nil {
		return nil
	}
	b.saving, b.dirty = b.dirty, nil
	for _, u := range b.saving {
		u.dirty = false
		if u.key != "" {
			rows = append(rows, b.rowOf(u))
		}
	}
	return rows
}

// Saved completes Rows.
func (b *Book) Saved(err error) {
	if err != nil {
		for _, u := range b.saving {
			b.markDirty(u)
		}
	}
	b.saving = nil
}

// Row returns the row of a scope or crawl; false if it has no limits.
func (b *Book) Row(of Subject) (storage.Row, bool) {
	u, _ := b.find(of)
	if u == nil {
		return storage.Row{}, false
	}
	return b.rowOf(u), true
}

func (b *Book) rowOf(u *usage) storage.Row {
	s := b.value(&u.Usage)
	return s.Row(u.key)
}

// HostRow returns the use of a host for its row.
func (b *Book) HostRow(id uint32, host []byte) (s row.Usage) {
	if _, u := b.own(id, host); u != nil {
		s = b.value(&u.Usage)
	}
	return s
}

// value is a usage as it is stored.
func (b *Book) value(u *quota.Usage) (s row.Usage) {
	if u.Begun() {
		n := u.Used()
		s = row.Usage{Since: instant.Millis(b.epoch.Add(time.Duration(u.Since()))), Served: n.Served, Bytes: min(n.Bytes, instant.Never-1), Errors: n.Errors}
	}
	return s
}

// date converts a stored time to a date.
func (b *Book) date(ms int64) int64 { return int64(instant.FromMillis(ms).Sub(b.epoch)) }

// restore sets a usage to its stored value.
func (b *Book) restore(u *quota.Usage, s row.Usage, now int64) {
	u.Restore(quota.Amount{Served: s.Served, Bytes: s.Bytes, Errors: s.Errors}, min(b.date(s.Since), now), s != row.Usage{})
}

// Restore reads the row of a scope or crawl. It returns false if there are no limits.
func (b *Book) Restore(of Subject, s row.Usage, now int64) bool {
	u, _ := b.find(of)
	if u == nil {
		return false
	}
	b.restore(&u.Usage, s, now)
	return true
}

// RestoreHost is Restore for a host that is loaded into memory.
func (b *Book) RestoreHost(id uint32, s row.Usage, now int64) {
	u := &hostUsage{Usage: quota.New(b.youngest)} // no call looked at it where it was
	b.restore(&u.Usage, s, now)
	b.hosts[id] = u
}

// Merge adds the counts of another frontier for a scope or crawl. It returns false if there are no
// limits here.
func (b *Book) Merge(of Subject, s row.Usage, now int64) bool {
	u, l := b.find(of)
	if u == nil {
		return false
	}
	b.merge(&u.Usage, l, s, now)
	b.markDirty(u)
	b.turn(u, l, now)
	return true
}

// MergeHost is Merge for a host.
func (b *Book) MergeHost(id uint32, host []byte, s row.Usage, now int64) {
	if b.hosts[id] == nil {
		b.hosts[id] = &hostUsage{Usage: quota.New(b.youngest)}
	}
	e, u := b.own(id, host)
	if e == nil {
		b.merge(&b.hosts[id].Usage, &quota.Limits{}, s, now)
		return
	}
	b.merge(&u.Usage, &e.Limits, s, now)
	if e.Ended != NoneEnded { // it counts, though the limits changed here since the period began
		u.BeginAfter(e.Ended + int64(time.Millisecond))
	}
}

func (b *Book) merge(u *quota.Usage, l *quota.Limits, s row.Usage, now int64) {
	var other quota.Usage
	b.restore(&other, s, now)
	u.Merge(l, &other, b.youngest, now)
}

// Counts reports whether the use in the row of a host that is not in memory still counts.
func (b *Book) Counts(host string, s row.Usage, now int64) bool {
	if b == nil {
		return false
	}
	e := b.each(hostkey.Bytes(host))
	return e != nil && e.counts(b.date(s.Since), now)
}

// StoredUsed is HostUsed for a host that is not in memory.
func (b *Book) StoredUsed(host string, s row.Usage, now int64) Used {
	if !b.Counts(host, s, now) {
		return Used{}
	}
	var u quota.Usage
	b.restore(&u, s, now)
	return used(&u, &b.each(hostkey.Bytes(host)).Limits, now)
}
