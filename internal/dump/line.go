// This file is a line of an export as it is decoded, and the values in it.

package dump

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/row"
)

// line is a line of any kind. The first member of each group is present in lines of that kind.
//
// Those of a URL come first, in the order in which they are written: by far the most lines are of URLs.
type line struct {
	URL          string
	URL64        []byte
	Host         *string // or it is the line of the host
	Host64       []byte
	Crawl        uint32
	Priority     int
	Depth        int
	Weight       lineFloat
	Due          lineTime // of groups, too
	Finished     int
	Fails        int
	Last         string
	Visits       int
	Changes      int
	FirstVisit   lineTime
	LastVisit    lineTime
	LastChange   lineTime
	LastModified lineTime
	State        []byte
	Meta         []byte

	Frontier *int64
	Time     lineTime
	Key      string
	Held     lineTime

	End *int64

	Settings *uint32

	ruleMembers

	Used   *string
	Counts *lineCounts // of hosts, too

	Value   *string
	Value64 []byte
	Data    []byte

	Forgotten *string
	Within    *uint32
	Number    uint64

	Group   *string
	Group64 []byte

	Joined     *string
	Joined64   []byte
	Assigned   int
	CrawlDelay time.Duration
	Why        string
	Standing   int
	Trouble    *lineTrouble

	Marks *string
}

type lineDelay struct {
	Fixed    *time.Duration
	Factor   *float64
	Min, Max time.Duration
}

// policy is the delay policy that a line names.
func (d *lineDelay) policy() (row.Delay, error) {
	switch {
	case d == nil:
		return row.Delay{}, nil
	case d.Fixed != nil && d.Factor == nil && d.Min == 0 && d.Max == 0:
		return row.Delay{Kind: row.Fixed, Max: *d.Fixed}, nil
	case d.Fixed == nil && d.Factor != nil:
		return row.Delay{Kind: row.Factor, Factor: *d.Factor, Min: d.Min, Max: d.Max}, nil
	}
	return row.Delay{}, errors.New("delay: want fixed, or factor with min and max")
}

type lineTrouble struct {
	Failed, Free       lineTime
	Failures           uint16
	Step, From, Search uint8
	Relapses           uint8
	Eased              bool
	Lanes              uint16
	Usual, Probes      uint8
	Failure            string
}

// trouble returns the failures of the host in a line.
func (l *lineTrouble) trouble() (t row.Trouble, err error) {
	if l.Failures > row.MaxFails || l.Relapses > row.MaxRelapses {
		return t, fmt.Errorf("trouble has %d failures and %d relapses; want at most %d and %d", l.Failures, l.Relapses, row.MaxFails, row.MaxRelapses)
	}
	kind := max(0, slices.Index(Failures[:], l.Failure))
	if l.Failure != "" && l.Failure != Failures[kind] {
		return t, fmt.Errorf("trouble has failure %q; want one of %q", l.Failure, Failures)
	}
	return row.Trouble{
		Quiet: int64(l.Failed), Free: int64(l.Free),
		Failure: uint8(kind), Usual: l.Usual, Fails: l.Failures, Step: l.Step, From: l.From, Search: l.Search, Relapses: l.Relapses,
		Eased: l.Eased, Lanes: l.Lanes, Probes: l.Probes,
	}, nil
}

// lineTime is a time in Unix milliseconds.
type lineTime int64

// Scan reads a date, or the number.
func (t *lineTime) Scan(in *jsonl.Scanner) error {
	if in.Peek() != '"' {
		ms, err := in.Int()
		*t = lineTime(ms)
		return err
	}
	text, err := in.Bytes()
	if err != nil {
		return err
	}
	x, err := time.Parse(time.RFC3339Nano, string(text))
	*t = lineTime(instant.Millis(x))
	return err
}

type lineFloat float64

// Scan reads a number, or the name of one that JSON cannot write.
func (x *lineFloat) Scan(in *jsonl.Scanner) error {
	if in.Peek() != '"' {
		v, err := in.Float()
		*x = lineFloat(v)
		return err
	}
	text, err := in.Text()
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	*x = lineFloat(v)
	return err
}

// either returns a text that is given as it is, or in base64.
func either(name string, text *string, binary []byte) (string, error) {
	switch {
	case text != nil && binary != nil:
		return "", fmt.Errorf("has both %s and %s64", name, name)
	case text != nil:
		return *text, nil
	case binary != nil:
		return string(binary), nil
	}
	return "", fmt.Errorf("has no %s", name)
}

// lineCounts is the use of limits.
type lineCounts struct {
	Since                 lineTime
	Served, Bytes, Errors int64
}

// usage returns the use of limits in a line; nothing if there is none.
func (l *lineCounts) usage() (s row.Usage, err error) {
	if l == nil {
		return s, nil
	}
	if l.Served < 0 || l.Bytes < 0 || l.Errors < 0 {
		return s, errors.New("counts: want numbers >= 0")
	}
	return row.Usage{Since: int64(l.Since), Served: l.Served, Bytes: l.Bytes, Errors: l.Errors}, nil
}
