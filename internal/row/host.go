package row

import (
	"math"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/storage"
)

// Host is the stored state of a host. Times are Unix milliseconds; 0: none.
type Host struct {
	Due        int64  // when it may be contacted
	CrawlDelay int32  // milliseconds
	Why        uint8  // which clock determines Due
	Group      string // that it belongs to
	Assigned   bool   // assigned by an operator
	Trouble    Trouble
	Used       Usage // of its separate limits
	Standing   int8  // levels by which its URLs are moved
}

// Trouble is the effect of failures on a host.
type Trouble struct {
	Quiet    int64 // when a contact failed last, or a step was taken back since
	Free     int64 // when the host may be contacted according to its other clocks
	Step     uint8
	From     uint8
	Search   uint8
	Relapses uint8
	Eased    bool
	Fails    uint16
	Probes   uint8
	Lanes    uint16
	Failure  uint8 // kind of the last one
	Usual    uint8
}

func (h *Host) fields(f *fields) {
	t := &h.Trouble
	number(f, 1, &h.Due, instant.MaxMillis)
	number(f, 2, &h.CrawlDelay, uint64(MaxCrawlDelay/time.Millisecond))
	text(f, 3, &h.Group, maxName)
	number(f, 4, &h.Why, Clocks-1)
	number(f, 5, &t.Quiet, instant.MaxMillis)
	number(f, 6, &t.Step, math.MaxUint8)
	number(f, 7, &t.From, math.MaxUint8)
	number(f, 8, &t.Search, math.MaxUint8)
	number(f, 9, &t.Relapses, MaxRelapses)
	flag(f, 10, &t.Eased)
	number(f, 11, &t.Fails, MaxFails)
	number(f, 12, &t.Probes, math.MaxUint8)
	number(f, 13, &t.Lanes, math.MaxUint16)
	flag(f, 14, &h.Assigned)
	number(f, 15, &t.Free, instant.MaxMillis)
	number(f, 16, &t.Failure, Failures-1)
	number(f, 17, &t.Usual, math.MaxUint8)
	h.Used.fields(f, 32)
	standing := uint8(h.Standing<<1 ^ h.Standing>>7) // 1 is -1, 2 is 1, 3 is -2
	number(f, 40, &standing, 2*MaxPriorities)
	h.Standing = int8(standing>>1) ^ -int8(standing&1)
}

// Row returns the row of the host with a name.
func (h *Host) Row(name string) storage.Row {
	var f fields
	h.fields(&f)
	return storage.Row{Key: HostKey + name, Value: f.row}
}

// ParseHost is the inverse of Row.
func ParseHost(name string, value []byte) (h Host, err error) {
	if len(value) == 0 {
		return h, Malformed(HostKey + name)
	}
	f := readFields(value)
	h.fields(&f)
	if err := f.end(); err != nil {
		return Host{}, named(HostKey+name, err)
	}
	return h, nil
}

// Usage is the use of limits in a period.
type Usage struct {
	Since                 int64 // when the period began, in Unix milliseconds
	Served, Bytes, Errors int64
}

// fields has tags from base+1 on.
func (u *Usage) fields(f *fields, base int) {
	number(f, base+1, &u.Since, instant.MaxMillis)
	number(f, base+2, &u.Served, uint64(instant.Never)-1)
	number(f, base+3, &u.Bytes, uint64(instant.Never)-1)
	number(f, base+4, &u.Errors, uint64(instant.Never)-1)
}

// Row returns the row with a key, which begins with UsageKey.
func (u *Usage) Row(key string) storage.Row {
	var f fields
	u.fields(&f, 0)
	return storage.Row{Key: key, Value: f.row}
}

// ParseUsage is the inverse of Row.
func ParseUsage(key string, value []byte) (u Usage, err error) {
	f := readFields(value)
	u.fields(&f, 0)
	return u, named(key, f.end())
}
