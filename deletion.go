// This file holds deletions: what they concern, and how they are stored.

package frontier

import (
	"encoding/binary"
	"strings"
)

// deletion says that of a scope or crawl all records up to seq are dead.
type deletion struct {
	scope   Scope
	ofCrawl bool // only URLs of crawl
	crawl   uint32

	seq     uint64 // a sequence number of its own; 0 until it is being committed
	block   uint32 // no block up to this number holds younger records
	written uint32 // block, as its row has it
	batch   uint64 // that it was committed with, or a later one

	removed   int64         // URLs that were found dead
	scheduled bool          // hosts were met that have scheduled records in memory
	swept     bool          // nothing dead is in memory but what leases and completions hold
	again     bool          // since the sweep began a dead record came back
	tried     chan struct{} // closed when that is so for the first time, or the frontier closed; nil if nobody waits
}

// doom is what all deletions together say about a host's queue: records up to
// seq, and parts in blocks up to block, are dead. The zero doom spares all.
type doom struct {
	seq   uint64
	block uint32
	by    *deletion // the youngest
	n     int       // deletions
}

func (d *doom) join(x *doom) {
	if x != nil && x.seq > d.seq {
		*d = *x
	}
}

// dooms are deletions by what they contain. A younger one says more than all
// older ones of the same scope.
//
// The zero value is empty. Not safe for concurrent use.
type dooms struct {
	hosts   map[string]*doom // by name
	domains map[string]*doom // by Scope.key
	all     *doom
	crawls  map[uint32]*doom
	n       int // deletions
}

func (s *dooms) add(d *deletion) {
	if s.hosts == nil {
		s.hosts, s.domains, s.crawls = map[string]*doom{}, map[string]*doom{}, map[uint32]*doom{}
	}
	x := s.at(d)
	if x == nil {
		x = &doom{}
		switch {
		case d.ofCrawl:
			s.crawls[d.crawl] = x
		case !d.scope.named:
			s.all = x
		case d.scope.domain:
			s.domains[d.scope.key()] = x
		default:
			s.hosts[d.scope.name] = x
		}
	}
	if d.seq > x.seq {
		x.seq, x.block, x.by = d.seq, d.block, d
	}
	x.n++
	s.n++
}

func (s *dooms) remove(d *deletion) {
	x := s.at(d)
	s.n--
	if x.n--; x.n > 0 {
		return // if d was the youngest: what it doomed stays so
	}
	switch {
	case d.ofCrawl:
		delete(s.crawls, d.crawl)
	case !d.scope.named:
		s.all = nil
	case d.scope.domain:
		delete(s.domains, d.scope.key())
	default:
		delete(s.hosts, d.scope.name)
	}
}

func (s *dooms) at(d *deletion) *doom {
	switch {
	case d.ofCrawl:
		return s.crawls[d.crawl]
	case !d.scope.named:
		return s.all
	case d.scope.domain:
		return s.domains[d.scope.key()]
	}
	return s.hosts[d.scope.name]
}

// of returns what is said of a host's URLs of a crawl.
func (s *dooms) of(host []byte, crawl uint32) (d doom) {
	if s.n == 0 {
		return d
	}
	d.join(s.all)
	d.join(s.crawls[crawl])
	d.join(s.hosts[string(host)])
	if len(s.domains) > 0 {
		var buf [256]byte
		key := append(appendReversed(buf[:0], host), '.')
		for i, b := range key {
			if b == '.' {
				d.join(s.domains[string(key[:i+1])])
			}
		}
	}
	return d
}

// ofHost reports whether a deletion concerns one host only.
func (d *deletion) ofHost() bool {
	return !d.ofCrawl && !d.scope.domain && d.scope.named
}

// contains reports whether a deletion concerns a host's URLs of a crawl.
func (d *deletion) contains(host string, crawl uint32) bool {
	return d.containsHost(bytesOf(host)) && (!d.ofCrawl || d.crawl == crawl)
}

func (d *deletion) containsHost(host []byte) bool {
	if d.scope.domain && !strings.HasSuffix(string(host), d.scope.name) && !mayBeAddress(host) {
		return false // most are not, and need not be reversed
	}
	return d.scope.contains(string(host))
}

// row encodes a deletion for the store: its number in the key; block, kind, and
// crawl or name in the value.
func (d *deletion) row() Row {
	v := binary.AppendUvarint(nil, uint64(d.block))
	switch {
	case d.ofCrawl:
		v = binary.AppendUvarint(append(v, 'c'), uint64(d.crawl))
	case !d.scope.named:
		v = append(v, 'a')
	case d.scope.domain:
		v = append(append(v, 'd'), d.scope.name...)
	default:
		v = append(append(v, 'h'), d.scope.name...)
	}
	return Row{Key: d.rowKey(), Value: v}
}

func (d *deletion) rowKey() string {
	return string(binary.BigEndian.AppendUint64([]byte(rowDeletion), d.seq))
}

// readDeletion is the inverse of row.
func readDeletion(key string, v []byte) (*deletion, error) {
	block, n := binary.Uvarint(v)
	if len(key) != len(rowDeletion)+8 || n <= 0 || block > 1<<32-1 || n == len(v) {
		return nil, errRow
	}
	kind, rest := v[n], v[n+1:]
	d := &deletion{seq: binary.BigEndian.Uint64([]byte(key[len(rowDeletion):])), block: uint32(block)}
	switch {
	case kind == 'c':
		crawl, n := binary.Uvarint(rest)
		if n <= 0 || n != len(rest) || crawl > 1<<32-1 {
			return nil, errRow
		}
		d.ofCrawl, d.crawl = true, uint32(crawl)
	case kind == 'a' && len(rest) == 0:
	case (kind == 'd' || kind == 'h') && len(rest) > 0 && len(rest) <= 255:
		d.scope = Scope{name: string(rest), domain: kind == 'd', named: true}
	default:
		return nil, errRow
	}
	if d.seq == 0 || d.seq >= 1<<48 {
		return nil, errRow
	}
	d.written = d.block
	return d, nil
}

// deletion restores a deletion whose row was found.
func (r *recovery) deletion(key string, value []byte) error {
	d, err := readDeletion(key, value)
	if err != nil {
		return &CorruptError{Key: []byte(key), Err: err}
	}
	f := r.f
	d.block = min(d.block, f.core.lastBlock) // higher numbers are given once more
	d.batch = f.committer.batchID
	f.seq = max(f.seq, d.seq)
	f.deletions = append(f.deletions, d)
	f.core.dooms.add(d)
	f.core.stored.add(d)
	return nil
}

// outdatedLocked lists the deletions that are of no use once the checkpoint that
// ends the log at through is complete.
func (f *Frontier) outdatedLocked(through uint64) (out []*deletion) {
	c := f.core
	if c.doomed > 0 { // a record that they concern would come back after a crash
		return nil
	}
	for _, d := range f.deletions {
		if d.swept && d.batch <= through && (c.timed.empty() || d.block < c.timed.oldest()) {
			out = append(out, d)
		}
	}
	return out
}

// deletionRowsLocked returns the rows that must say more, now that blocks become
// valid that were made when a deletion came.
func (f *Frontier) deletionRowsLocked() (rows []Row) {
	for _, d := range f.deletions {
		if d.written != d.block {
			rows = append(rows, d.row())
		}
	}
	return rows
}

func (f *Frontier) deletionsWrittenLocked() {
	for _, d := range f.deletions {
		d.written = d.block
	}
}

// forgetDeletions deletes the rows of deletions, between two commits.
// If that fails the next round tries again.
func (f *Frontier) forgetDeletions(ds []*deletion) {
	if len(ds) == 0 {
		return
	}
	f.mu.Lock()
	b := &Batch{ID: f.committer.batchID + 1, Time: wallMillis(f.wall(f.nowLocked()))}
	f.mu.Unlock()
	for _, d := range ds {
		b.Rows = append(b.Rows, Row{Key: d.rowKey()})
	}
	if err := f.opts.Spill.Commit(b); err != nil {
		f.opts.Logger.Warn("dropping deletions", "error", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.committer.batchID, f.applied.batch = b.ID, b.ID
	gone := map[*deletion]bool{}
	for _, d := range ds {
		gone[d] = true
		f.core.stored.remove(d)
	}
	kept := f.deletions[:0]
	for _, d := range f.deletions {
		if !gone[d] {
			kept = append(kept, d)
		}
	}
	clear(f.deletions[len(kept):])
	f.deletions = kept
}
