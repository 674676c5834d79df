package row

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/storage"
)

// Count is how many URLs a host has within a crawl, whatever they wait for. Those up to Seq that a
// deletion concerns are counted, although they are dead.
type Count struct {
	Seq      uint64 // when it changed last
	Total    int64
	Finished int64 // of these
}

func (c *Count) fields(f *fields) {
	number(f, 1, &c.Seq, maxSeq)
	number(f, 2, &c.Total, math.MaxInt64)
	number(f, 3, &c.Finished, math.MaxInt64)
	f.require(c.Finished <= c.Total)
}

// CountsOf is what the keys of a crawl's counts begin with. They are in the domain order of the hosts.
func CountsOf(crawl uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte(CountKey), crawl))
}

// CountOf is the key of the count of a host within a crawl.
func CountOf(crawl uint32, host string) string { return CountsOf(crawl) + hostkey.Reversed(host) }

// Row returns the row under a key.
func (c *Count) Row(key string) storage.Row {
	if c.Total == 0 {
		return storage.Row{Key: key}
	}
	var f fields
	c.fields(&f)
	return storage.Row{Key: key, Value: f.row}
}

// ParseCount is the inverse of Row.
func ParseCount(key string, v []byte) (crawl uint32, host string, c Count, err error) {
	crawl, host, err = Counts(key)
	if err == nil && len(v) == 0 {
		err = Malformed(key)
	}
	if err != nil {
		return 0, "", Count{}, err
	}
	f := readFields(v)
	c.fields(&f)
	if err := f.end(); err != nil {
		return 0, "", Count{}, named(key, err)
	}
	return crawl, host, c, nil
}

// Counts is the inverse of CountOf.
func Counts(key string) (crawl uint32, host string, err error) {
	name, ok := strings.CutPrefix(key, CountKey)
	if !ok || len(name) < 5 {
		return 0, "", Malformed(key)
	}
	return binary.BigEndian.Uint32([]byte(name)), hostkey.Reversed(name[4:]), nil
}

// CountSum is the sum of a crawl's counts.
type CountSum struct {
	Total    int64
	Finished int64
	Hosts    int64 // with URLs
	Active   int64 // of these, with others than finished ones
}

func (s *CountSum) fields(f *fields) {
	number(f, 1, &s.Total, math.MaxInt64)
	number(f, 2, &s.Finished, math.MaxInt64)
	number(f, 3, &s.Hosts, math.MaxInt64)
	number(f, 4, &s.Active, math.MaxInt64)
}

// Row returns the row of the sum of a crawl.
func (s *CountSum) Row(crawl uint32) storage.Row {
	var f fields
	s.fields(&f)
	return storage.Row{Key: string(binary.BigEndian.AppendUint32([]byte(SumKey), crawl)), Value: f.row}
}

// ParseCountSum is the inverse of Row.
func ParseCountSum(key string, v []byte) (crawl uint32, s CountSum, err error) {
	if len(key) != len(SumKey)+4 {
		return 0, CountSum{}, Malformed(key)
	}
	f := readFields(v)
	s.fields(&f)
	return binary.BigEndian.Uint32([]byte(key[len(SumKey):])), s, named(key, f.end())
}

// Counted returns the row that says that the counts are right, or takes that back.
func Counted(right bool) storage.Row {
	if right {
		return storage.Row{Key: SumKey, Value: []byte{1}}
	}
	return storage.Row{Key: SumKey}
}
