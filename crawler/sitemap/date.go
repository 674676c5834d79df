// This file reads dates and change frequencies.

package sitemap

import (
	"math"
	"strings"
	"time"
)

// Frequency is how often a page is said to change.
type Frequency uint8

// The frequencies of sitemaps.org.
const (
	Unstated Frequency = iota
	Always             // each time it is looked at
	Hourly
	Daily
	Weekly
	Monthly
	Yearly
	Never // an archived page
)

var frequencyNames = [...]string{"", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}

// String returns the protocol's word; it is empty for Unstated.
func (f Frequency) String() string { return frequencyNames[min(f, Never)] }

// Interval returns the time between two changes that is claimed: 0 for Always, the
// longest Duration for Never. It is unknown, ok is false, for Unstated.
func (f Frequency) Interval() (d time.Duration, ok bool) {
	const day = 24 * time.Hour
	return [...]time.Duration{0, 0, time.Hour, day, 7 * day, 30 * day, 365 * day, math.MaxInt64}[min(f, Never)], f != Unstated
}

func parseFrequency(s string) Frequency {
	for i, name := range frequencyNames {
		if strings.EqualFold(s, name) {
			return Frequency(i)
		}
	}
	return Unstated
}

// isoLayouts are those of the W3C's "Date and Time Formats", and what is often
// written instead.
var isoLayouts = []string{
	time.RFC3339, "2006-01-02", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01", "2006", "20060102", "20060102T150405Z",
}

// mailLayouts are those of RFC 822 and RFC 5322 without the day of the week.
var mailLayouts = []string{
	"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04 -0700", "2 Jan 06 15:04:05 -0700", "2 Jan 06 15:04 -0700",
	"2 Jan 2006 15:04:05", "2 Jan 2006 15:04", "2 Jan 2006",
}

// zones are those of RFC 822.
var zones = map[string]string{
	"GMT": "+0000", "UT": "+0000", "UTC": "+0000", "Z": "+0000", "EST": "-0500", "EDT": "-0400",
	"CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// parseDate reads a date in any of the layouts. Without a zone it is taken as UTC.
func parseDate(s string) (time.Time, bool) {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) == 0 || len(s) > 64 {
		return time.Time{}, false
	}
	iso := s
	if len(s) > 10 && s[10] == ' ' {
		iso = s[:10] + "T" + strings.ReplaceAll(s[11:], " ", "")
	}
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, iso); err == nil {
			return t.UTC(), true
		}
	}
	if _, rest, ok := strings.Cut(s, ","); ok { // the day of the week, in whatever language
		s = strings.TrimSpace(rest)
	}
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		if offset, ok := zones[strings.ToUpper(s[i+1:])]; ok {
			s = s[:i+1] + offset
		}
	}
	for _, layout := range mailLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
