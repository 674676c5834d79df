// This file is a line of an export as it is decoded, and the values in it.

package frontier

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// exportLine is a line of any kind. Which one it is says the member that is first
// in each group.
type exportLine struct {
	Frontier *int64
	Time     lineTime
	Key      string
	Held     lineTime

	End *int64

	Settings *uint32

	Rule         *string
	Name         *string
	Name64       []byte
	Delay        *lineDelay
	Concurrency  int
	Paused       string
	BlockedUntil lineTime
	Priorities   []int
	Limits       lineLimits
	HostLimits   lineLimits

	Used   *string
	Counts *lineCounts // of hosts, too

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

// policy is the delay policy that a line tells.
func (d *lineDelay) policy() (DelayPolicy, error) {
	switch {
	case d == nil:
		return nil, nil
	case d.Fixed != nil && d.Factor == nil && d.Min == 0 && d.Max == 0:
		return FixedDelay(time.Duration(*d.Fixed)), nil
	case d.Fixed == nil && d.Factor != nil:
		return FactorDelay(*d.Factor, time.Duration(d.Min), time.Duration(d.Max)), nil
	}
	return nil, errors.New("delay: want fixed, or factor with min and max")
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

// state is what a line tells of a host's failures.
func (l *lineTrouble) state() (t trouble, err error) {
	if l.Failures > maxAfter || l.Relapses > maxRelapses {
		return t, fmt.Errorf("trouble has %d failures and %d relapses; want at most %d and %d", l.Failures, l.Relapses, maxAfter, maxRelapses)
	}
	kind := FailureOther
	for l.Failure != "" && l.Failure != kind.String() {
		if kind++; int(kind) == failures {
			return t, fmt.Errorf("trouble has failure %q; want one like %q", l.Failure, FailureConnect)
		}
	}
	return trouble{
		kind: kind, usual: l.Usual, fails: l.Failures, step: l.Step, from: l.From, search: l.Search, relapses: l.Relapses,
		eased: l.Eased, lanes: l.Lanes, probes: l.Probes,
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
	*t = lineTime(wallMillis(x))
	return err
}

func (t lineTime) time() time.Time { return millisTime(int64(t)) }

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

// either is a text that is given as it is, or in base64.
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

// lineLimits are Limits.
type lineLimits struct {
	Waiting, Served, Bytes, Errors int64
	Depth                          int
	Period                         lineDuration
}

func (l *lineLimits) limits() Limits {
	return Limits{l.Waiting, l.Served, l.Bytes, l.Errors, l.Depth, time.Duration(l.Period)}
}

// lineCounts is what was used of limits.
type lineCounts struct {
	Since                 lineTime
	Served, Bytes, Errors int64
}

// state is what a line tells of what was used; nothing if it does not.
func (l *lineCounts) state() (s usageState, err error) {
	if l == nil {
		return s, nil
	}
	if l.Served < 0 || l.Bytes < 0 || l.Errors < 0 {
		return s, errors.New("counts: want numbers >= 0")
	}
	return usageState{int64(l.Since), l.Served, l.Bytes, l.Errors}, nil
}
