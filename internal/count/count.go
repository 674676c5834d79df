// Package count keeps how many URLs each host has within a crawl, and how many of these are finished. It
// owns these numbers: the sums of the crawls, and the count of each host as long as nothing stores it as a
// row.
//
// A count is of all URLs of a host, whatever they wait for, so that time alone changes none: who asks
// subtracts those that are in memory in other states. With a store the counts are rows, which a batch
// changes together with the URLs, so that a host that is done takes no memory.
//
// A deletion does not look for the counts that it concerns. A count that did not change since is dead, as
// its URLs are: it reads as zero until it is dropped.
//
// It has no lock: callers hold the frontier's, except in Write, and in Each and FindDead if it has a store.
package count

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/btree"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// Numbers are of URLs.
type Numbers struct {
	Total    int64
	Finished int64 // of these
}

// Add adds n times x.
func (n *Numbers) Add(x Numbers, times int64) {
	n.Total += times * x.Total
	n.Finished += times * x.Finished
}

// Changes are those of one batch.
type Changes struct {
	Dead func(host string, crawl uint32) uint64 // number of the last deletion before that concerns a count

	gone tombstone.Set  // deletions of the batch, so far
	of   map[string]int // index in list, by key of the row
	list []change
	sums map[uint32]row.CountSum // of crawls, as they will be
	read bool                    // list has what was before
}

// change is that of the count of a host within a crawl.
type change struct {
	key   string
	host  string
	crawl uint32
	Numbers
	dead  uint64    // a deletion up to this number concerns it
	reset bool      // a deletion of the same batch concerns what was before
	shown row.Count // what was before, with the changes that are visible already
}

// Empty reports whether nothing changes.
func (c *Changes) Empty() bool { return c == nil || len(c.list) == 0 }

// Len is how many counts change.
func (c *Changes) Len() int { return len(c.list) }

func (c *Changes) dead(host string, crawl uint32) uint64 {
	return max(c.Dead(host, crawl), c.gone.Of(hostkey.Bytes(host), crawl).Seq)
}

// AddAlive is Add for URLs of a sequence number, unless they are dead.
func (c *Changes) AddAlive(seq uint64, host string, crawl uint32, x Numbers, n int64) {
	if seq > c.dead(host, crawl) {
		c.Add(host, crawl, x, n)
	}
}

// Add adds x times n to the count of a host within a crawl.
func (c *Changes) Add(host string, crawl uint32, x Numbers, n int64) {
	key := row.CountOf(crawl, host)
	i, ok := c.of[key]
	if !ok {
		if c.of == nil {
			c.of = map[string]int{}
		}
		i = len(c.list)
		c.of[key] = i
		c.list = append(c.list, change{key: key, host: host, crawl: crawl, dead: c.dead(host, crawl)})
	}
	c.list[i].Numbers.Add(x, n)
}

// Delete adds a deletion, which has its number, and takes out the changes before it that it concerns.
func (c *Changes) Delete(d *tombstone.Tombstone) {
	for i := range c.list {
		if x := &c.list[i]; d.Contains(hostkey.Bytes(x.host), x.crawl) {
			x.Numbers, x.reset = Numbers{}, true
		}
	}
	c.gone.Add(d)
}

// Read reads the row with a key.
type Read func(key string) (value []byte, found bool, err error)

// Table is the counts.
type Table struct {
	sums    map[uint32]*row.CountSum
	writing *Changes           // of the batch under way, since before it is visible
	ahead   map[uint32]Numbers // what is visible of it, by crawl
	version uint64
	store   Store
	tree    *btree.BTreeG[entry] // the counts, if no store has them as rows; else nil
}

// Store reads rows, as storage.Spill does.
type Store interface {
	Row(key string) (value []byte, found bool, err error)
	Rows(prefix, from string, fn func(key string, value []byte) bool) error
}

// entry is a count in memory.
type entry struct {
	key string
	row.Count
}

// entryBytes is about what an entry takes, with a host of usual length.
const entryBytes = 120

// NewTable returns an empty table of a store that has the counts as rows; nil: they are in memory.
func NewTable(s Store) *Table {
	t := &Table{sums: map[uint32]*row.CountSum{}, store: s}
	if s == nil {
		t.tree = btree.NewG(32, func(a, b entry) bool { return a.key < b.key })
	}
	return t
}

// Size returns the memory in bytes.
func (t *Table) Size() int64 {
	if t == nil {
		return 0
	}
	n := int64(len(t.sums)) * 64
	if t.tree != nil {
		n += int64(t.tree.Len()) * entryBytes
	}
	return n
}

// Sum returns the sum of a crawl, with what is visible of the batch under way.
func (t *Table) Sum(crawl uint32) (s row.CountSum) {
	if t == nil {
		return s
	}
	s = t.sum(crawl)
	s.Total += t.ahead[crawl].Total
	s.Finished += t.ahead[crawl].Finished
	return s
}

func (t *Table) sum(crawl uint32) row.CountSum {
	if s := t.sums[crawl]; s != nil {
		return *s
	}
	return row.CountSum{}
}

// Crawls returns the numbers of the crawls that have URLs, in ascending order.
func (t *Table) Crawls() []uint32 {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.sums))
}

// SetSum sets the sum of a crawl.
func (t *Table) SetSum(crawl uint32, s row.CountSum) {
	if s == (row.CountSum{}) {
		delete(t.sums, crawl)
		return
	}
	t.sums[crawl] = &s
}

// Note says that a change of the batch under way is visible: n times x, as of seq.
func (t *Table) Note(host string, crawl uint32, x Numbers, n int64, seq uint64) {
	if t.ahead == nil {
		t.ahead = map[uint32]Numbers{}
	}
	s := t.ahead[crawl]
	s.Add(x, n)
	t.ahead[crawl] = s
	if c := t.writing; c != nil {
		if i, ok := c.of[row.CountOf(crawl, host)]; ok {
			one := change{Numbers: Numbers{n * x.Total, n * x.Finished}, dead: c.list[i].dead}
			c.list[i].shown = one.after(c.list[i].shown, seq)
		}
	}
}

// moved changes a sum when a count is now something else.
func moved(s *row.CountSum, was, now row.Count) {
	one := func(x row.Count, n int64) {
		s.Total += n * x.Total
		s.Finished += n * x.Finished
		if x.Total > 0 {
			s.Hosts += n
		}
		if x.Total > x.Finished {
			s.Active += n
		}
	}
	one(was, -1)
	one(now, 1)
}

// Begin says that a batch with these changes is under way. End must follow.
func (t *Table) Begin(c *Changes) { t.writing = c }

// Write returns the rows of the batch under way, whose changes are as of seq. It needs no lock: nothing
// else changes the table then. Written must follow, before the rows may be read.
func (t *Table) Write(seq uint64) ([]storage.Row, error) {
	c := t.writing
	if c.Empty() {
		return nil, nil
	}
	c.sums = map[uint32]row.CountSum{}
	var rows []storage.Row
	for i := range c.list {
		x := &c.list[i]
		if !x.writes() {
			continue
		}
		was, err := Load(x.key, t.store.Row)
		if err != nil {
			return nil, err
		}
		x.shown = was
		now := x.after(was, seq)
		if now.Total == 0 && was.Total == 0 {
			continue
		}
		s, ok := c.sums[x.crawl]
		if !ok {
			s = t.sum(x.crawl)
		}
		moved(&s, was, now)
		c.sums[x.crawl] = s
		rows = append(rows, now.Row(x.key))
	}
	for crawl, s := range c.sums {
		rows = append(rows, s.Row(crawl))
	}
	return rows, nil
}

// Written says that the rows of the batch under way may be read from now on.
func (t *Table) Written() {
	if t.writing != nil {
		t.writing.read = true
	}
}

// writes reports whether there is a change.
func (x *change) writes() bool { return x.Numbers != (Numbers{}) || x.reset }

// after is the count was with the change.
func (x *change) after(was row.Count, seq uint64) row.Count {
	now := row.Count{Seq: seq}
	if !x.reset && was.Seq > x.dead {
		now.Total, now.Finished = was.Total, was.Finished
	}
	now.Total += x.Total
	now.Finished += x.Finished
	return now
}

// Load reads the count with a key.
func Load(key string, read Read) (row.Count, error) {
	value, found, err := read(key)
	if err != nil || !found {
		return row.Count{}, err
	}
	_, _, c, err := row.ParseCount(key, value)
	return c, err
}

// End ends the batch that was begun: it is visible as a whole, or it failed.
func (t *Table) End(written bool) {
	c := t.writing
	t.writing = nil
	clear(t.ahead)
	if c.Empty() {
		return
	}
	t.version++
	if !written {
		return
	}
	for crawl, s := range c.sums {
		t.SetSum(crawl, s)
	}
}

// Dead is a count to be dropped.
type Dead struct {
	Key   string
	Crawl uint32
	row.Count
}

// FindDead looks at up to most counts of crawls, from a key on, for those that d has left dead. It returns
// where to go on. It must not be called during a batch.
func (t *Table) FindDead(d *tombstone.Tombstone, crawls []uint32, from string, most int) (dead []Dead, rest []uint32, next string, err error) {
	for n := 0; n < most && len(crawls) > 0; {
		prefix, more := row.CountsOf(crawls[0])+hostkey.Reversed(d.Scope.Name), ""
		n++
		err := t.Each(prefix, from, func(key, host string, crawl uint32, x row.Count) bool {
			if n >= most {
				more = key
				return false
			}
			n++
			if x.Seq <= d.Seq && d.Contains(hostkey.Bytes(host), crawl) {
				dead = append(dead, Dead{Key: key, Crawl: crawl, Count: x})
			}
			return !d.OfHost() // it is the first
		})
		if err != nil {
			return nil, nil, "", err
		}
		if from = more; more == "" {
			crawls = crawls[1:]
		}
	}
	return dead, crawls, from, nil
}

// Drop drops dead counts when commit has made the rows durable that do so. It must not be called during a
// batch; commit returns with the lock held, without it before.
func (t *Table) Drop(dead []Dead, commit func([]storage.Row) error) error {
	sums := map[uint32]row.CountSum{}
	var rows []storage.Row
	for _, x := range dead {
		s, ok := sums[x.Crawl]
		if !ok {
			s = t.sum(x.Crawl)
		}
		moved(&s, x.Count, row.Count{})
		sums[x.Crawl] = s
		rows = append(rows, storage.Row{Key: x.Key})
	}
	for crawl, s := range sums {
		rows = append(rows, s.Row(crawl))
	}
	if err := commit(rows); err != nil {
		return err
	}
	for _, x := range dead {
		if t.tree != nil {
			t.tree.Delete(entry{key: x.Key})
		}
	}
	for crawl, s := range sums {
		t.SetSum(crawl, s)
	}
	t.version++
	return nil
}

// Version changes whenever a batch has become visible.
func (t *Table) Version() uint64 { return t.version }

// Visible is the count with a key, whose row was read since the version changed last: if the batch under
// way changes it, with what is visible of that.
func (t *Table) Visible(key string, read row.Count) row.Count {
	if c := t.writing; c != nil && c.read {
		if i, ok := c.of[key]; ok && c.list[i].writes() {
			return c.list[i].shown
		}
	}
	return read
}

// In memory.

// Stored reports whether the counts are rows.
func (t *Table) Stored() bool { return t.tree == nil }

// Change is a batch with one change, of a table in memory.
func (t *Table) Change(host string, crawl uint32, x Numbers, n int64, seq uint64, dead func(host string, crawl uint32) uint64) {
	c := change{key: row.CountOf(crawl, host), Numbers: Numbers{n * x.Total, n * x.Finished}, dead: dead(host, crawl)}
	was, _ := t.tree.Get(entry{key: c.key})
	now := entry{strings.Clone(c.key), c.after(was.Count, seq)}
	s := t.sum(crawl)
	moved(&s, was.Count, now.Count)
	t.SetSum(crawl, s)
	if now.Total == 0 {
		t.tree.Delete(now)
		return
	}
	t.tree.ReplaceOrInsert(now)
}

// Of returns a count in memory.
func (t *Table) Of(key string) row.Count {
	x, _ := t.tree.Get(entry{key: key})
	return x.Count
}

// Each calls fn with the counts whose keys begin with prefix and are not before from, in order, until fn
// returns false.
func (t *Table) Each(prefix, from string, fn func(key, host string, crawl uint32, c row.Count) bool) (err error) {
	if !t.Stored() {
		t.tree.AscendGreaterOrEqual(entry{key: max(prefix, from)}, func(x entry) bool {
			crawl, host, _ := row.Counts(x.key) // we made it
			return strings.HasPrefix(x.key, prefix) && fn(x.key, host, crawl, x.Count)
		})
		return nil
	}
	return errors.Join(t.store.Rows(prefix, from, func(key string, value []byte) bool {
		crawl, host, c, e := row.ParseCount(key, value)
		err = e
		return err == nil && fn(key, host, crawl, c)
	}), err)
}
