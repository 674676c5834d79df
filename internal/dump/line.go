// This file is a line of an export as it is decoded, and the values in it.

package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
)

// line is a line of any kind. The first member of each group is present in lines of that kind.
type line struct {
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
	Due     lineTime // of hosts and URLs, too

	Host       *string
	Host64     []byte
	Joined     *string
	Joined64   []byte
	Assigned   int
	CrawlDelay lineDuration
	Why        string
	Trouble    *lineTrouble

	URL          *string
	URL64        []byte
	Crawl        uint32
	Priority     int
	Depth        int
	Weight       lineFloat
	Finished     int
	Fails        int
	Visits       int
	Changes      int
	FirstVisit   lineTime
	LastVisit    lineTime
	LastChange   lineTime
	LastModified lineTime
	Last         string
	State        []byte
	Meta         []byte

	Marks *string
}

type lineDelay struct {
	Fixed    *lineDuration
	Factor   *float64
	Min, Max lineDuration
}

// policy is the delay policy that a line names.
func (d *lineDelay) policy() (row.Delay, error) {
	switch {
	case d == nil:
		return row.Delay{}, nil
	case d.Fixed != nil && d.Factor == nil && d.Min == 0 && d.Max == 0:
		return row.Delay{Kind: row.Fixed, Max: time.Duration(*d.Fixed)}, nil
	case d.Fixed == nil && d.Factor != nil:
		return row.Delay{Kind: row.Factor, Factor: *d.Factor, Min: time.Duration(d.Min), Max: time.Duration(d.Max)}, nil
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

func (t *lineTime) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		ms, err := strconv.ParseInt(string(b), 10, 64)
		*t = lineTime(ms)
		return err
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	x, err := time.Parse(time.RFC3339Nano, s)
	*t = lineTime(instant.Millis(x))
	return err
}

type lineDuration time.Duration

func (d *lineDuration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	x, err := time.ParseDuration(s)
	*d = lineDuration(x)
	return err
}

type lineFloat float64

func (x *lineFloat) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 64)
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

// lineLimits are row.Limits.
type lineLimits struct {
	Waiting, Served, Bytes, Errors int64
	Depth                          int
	Period                         lineDuration
}

func (l *lineLimits) limits() row.Limits {
	return row.Limits{
		Waiting: l.Waiting, Served: l.Served, Bytes: l.Bytes, Errors: l.Errors, Depth: l.Depth, Period: time.Duration(l.Period),
	}
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
