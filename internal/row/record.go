package row

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/seed-7440039f/frontier/storage"
)

// maxSeq bounds sequence numbers.
const maxSeq = 1<<48 - 1

// Deletion means that records of a scope, of a crawl, or of a scope within a crawl are dead.
type Deletion struct {
	Seq     uint64 // up to this one
	Block   uint32 // no block up to this number holds younger records
	Scope   Scope
	OfCrawl bool // of Crawl only
	Crawl   uint32
}

// Key is the key of the deletion's row.
func (d *Deletion) Key() string {
	return string(binary.BigEndian.AppendUint64([]byte(DeletionKey), d.Seq))
}

// What a deletion is of.
const (
	ofAll = iota + 1
	ofDomain
	ofHost
	ofCrawl
	ofDomainInCrawl
	ofHostInCrawl
)

func (d *Deletion) fields(f *fields) {
	kind := ofHost
	switch {
	case !d.Scope.Named && d.OfCrawl:
		kind = ofCrawl
	case !d.Scope.Named:
		kind = ofAll
	case d.Scope.Domain && d.OfCrawl:
		kind = ofDomainInCrawl
	case d.Scope.Domain:
		kind = ofDomain
	case d.OfCrawl:
		kind = ofHostInCrawl
	}
	if f.reading {
		kind = 0
	}
	number(f, 1, &kind, ofHostInCrawl)
	f.require(kind != 0)
	if f.reading {
		d.OfCrawl = kind >= ofCrawl
		d.Scope.Domain = kind == ofDomain || kind == ofDomainInCrawl
		d.Scope.Named = d.Scope.Domain || kind == ofHost || kind == ofHostInCrawl
	}
	number(f, 2, &d.Block, math.MaxUint32)
	number(f, 3, &d.Crawl, math.MaxUint32)
	text(f, 4, &d.Scope.Name, maxName)
	f.require((d.Scope.Name != "") == d.Scope.Named && (d.Crawl == 0 || d.OfCrawl))
}

// Row returns the deletion's row.
func (d *Deletion) Row() storage.Row {
	var f fields
	d.fields(&f)
	return storage.Row{Key: d.Key(), Value: f.row}
}

// ParseDeletion is the inverse of Row.
func ParseDeletion(key string, v []byte) (d Deletion, err error) {
	if len(key) != len(DeletionKey)+8 || len(v) == 0 {
		return d, Malformed(key)
	}
	d.Seq = binary.BigEndian.Uint64([]byte(key[len(DeletionKey):]))
	f := readFields(v)
	d.fields(&f)
	f.require(d.Seq > 0 && d.Seq <= maxSeq)
	return d, named(key, f.end())
}

// Forgotten means that the marks of the URLs of a scope, of a crawl, or of a scope within a crawl are
// made with a number. Those made without it, or with a lower one, are of URLs that were forgotten.
type Forgotten struct {
	Number  uint64
	Scope   Scope
	OfCrawl bool // of Crawl only
	Crawl   uint32
}

// Check returns an error if it is not what Row makes a row of.
func (x *Forgotten) Check() error {
	if x.Number < 1 || x.Number > maxSeq {
		return fmt.Errorf("number is %d; want 1 to %d", x.Number, uint64(maxSeq))
	}
	return x.Scope.Check()
}

func (x *Forgotten) fields(f *fields) { number(f, 1, &x.Number, maxSeq) }

// Row returns the row.
func (x *Forgotten) Row() storage.Row {
	key := []byte(ForgetKey + "a")
	if x.OfCrawl {
		key = binary.BigEndian.AppendUint32([]byte(ForgetKey+"c"), x.Crawl)
	}
	var f fields
	x.fields(&f)
	return storage.Row{Key: string(key) + x.Scope.Key(), Value: f.row}
}

// ParseForgotten is the inverse of Row.
func ParseForgotten(key string, v []byte) (x Forgotten, err error) {
	name, ok := strings.CutPrefix(key, ForgetKey+"a")
	if !ok {
		name, x.OfCrawl = strings.CutPrefix(key, ForgetKey+"c")
		if !x.OfCrawl || len(name) < 4 {
			return Forgotten{}, Malformed(key)
		}
		x.Crawl, name = binary.BigEndian.Uint32([]byte(name)), name[4:]
	}
	if x.Scope, err = ScopeOf(name); err == nil {
		f := readFields(v)
		x.fields(&f)
		f.require(x.Number > 0)
		err = f.end()
	}
	if err != nil {
		return Forgotten{}, named(key, err)
	}
	return x, nil
}

// Outdated means that only records of a URL from Seq on count. Timed blocks up to a number may hold
// an older one.
type Outdated struct {
	Mark  storage.Mark
	Seq   uint64
	Block uint32
}

func (o *Outdated) fields(f *fields) {
	number(f, 1, &o.Seq, maxSeq)
	number(f, 2, &o.Block, math.MaxUint32)
}

// Row returns the row.
func (o *Outdated) Row() storage.Row {
	var f fields
	o.fields(&f)
	return storage.Row{Key: MarkKey(OutdatedKey, o.Mark), Value: f.row}
}

// ParseOutdated is the inverse of Row.
func ParseOutdated(key string, v []byte) (o Outdated, err error) {
	var ok bool
	if o.Mark, ok = markOf(OutdatedKey, key); !ok || len(v) == 0 {
		return o, Malformed(key)
	}
	f := readFields(v)
	o.fields(&f)
	return o, named(key, f.end())
}

// Hint is the news about a URL, encoded like its record.
type Hint struct {
	Mark storage.Mark
	Body []byte
}

// Row returns the row.
func (h *Hint) Row() storage.Row { return storage.Row{Key: MarkKey(HintKey, h.Mark), Value: h.Body} }

// ParseHint is the inverse of Row.
func ParseHint(key string, v []byte) (Hint, error) {
	mark, ok := markOf(HintKey, key)
	if !ok {
		return Hint{}, Malformed(key)
	}
	return Hint{mark, v}, nil
}

// Again is what a URL comes again as when the lease of record Seq has ended: it was forced meanwhile.
type Again struct {
	Seq      uint64
	Host     string
	Crawl    uint32
	Priority uint8
	Due      int64  // as storage.Admission has it
	Forced   uint64 // the last sequence number then
	Body     string // of the record to come
}

func (a *Again) fields(f *fields) {
	text(f, 1, &a.Host, maxName)
	number(f, 2, &a.Crawl, math.MaxUint32)
	number(f, 3, &a.Priority, math.MaxUint8)
	signed(f, 4, &a.Due)
	number(f, 5, &a.Forced, maxSeq)
	text(f, 6, &a.Body, math.MaxInt32)
	f.require(a.Host != "" && a.Priority > 0 && a.Body != "")
}

// Row returns the row.
func (a *Again) Row() storage.Row {
	var f fields
	a.fields(&f)
	return storage.Row{Key: AgainRow(a.Seq), Value: f.row}
}

// AgainRow is the key of the row about record seq.
func AgainRow(seq uint64) string { return string(binary.BigEndian.AppendUint64([]byte(AgainKey), seq)) }

// ParseAgain is the inverse of Row.
func ParseAgain(key string, v []byte) (a Again, err error) {
	if len(key) != len(AgainKey)+8 || len(v) == 0 {
		return a, Malformed(key)
	}
	a.Seq = binary.BigEndian.Uint64([]byte(key[len(AgainKey):]))
	f := readFields(v)
	a.fields(&f)
	f.require(a.Seq > 0 && a.Seq <= maxSeq)
	return a, named(key, f.end())
}

// MarkKey is the key of a row about a URL.
func MarkKey(prefix string, m storage.Mark) string { return prefix + string(m[:]) }

func markOf(prefix, key string) (m storage.Mark, ok bool) {
	if len(key) != len(prefix)+len(m) {
		return m, false
	}
	copy(m[:], key[len(prefix):])
	return m, true
}

// Meta is the state of a frontier itself.
type Meta struct {
	Key   [2]uint64 // of the fingerprints
	Epoch uint64    // how often the frontier was opened
	Clean bool      // it was closed
	Seq   uint64    // last sequence number
	Gen   uint32
	Held  uint64 // last opening after a crash, Unix milliseconds; 0: never
	Hosts uint64 // fingerprint of the function that names hosts; 0: unknown
}

// fields follow a byte with the Version in the row.
func (m *Meta) fields(f *fields) {
	number(f, 1, &m.Key[0], math.MaxUint64)
	number(f, 2, &m.Key[1], math.MaxUint64)
	number(f, 3, &m.Epoch, math.MaxUint64)
	flag(f, 4, &m.Clean)
	number(f, 5, &m.Seq, maxSeq)
	number(f, 6, &m.Gen, math.MaxUint32)
	number(f, 7, &m.Held, math.MaxUint64)
	number(f, optional, &m.Hosts, math.MaxUint64)
}

// Row returns the row.
func (m Meta) Row() storage.Row {
	f := fields{row: []byte{Version}}
	m.fields(&f)
	return storage.Row{Key: MetaKey, Value: f.row}
}

// ParseMeta is the inverse of Row. For a row of another version it returns storage.ErrVersion.
func ParseMeta(v []byte) (m Meta, err error) {
	if len(v) == 0 || v[0] == 0 {
		return m, Malformed(MetaKey)
	}
	if v[0] != Version {
		return m, fmt.Errorf("%w: rows are of version %d, this is version %d", storage.ErrVersion, v[0], Version)
	}
	f := readFields(v[1:])
	m.fields(&f)
	return m, named(MetaKey, f.end())
}
