// This file reads dates and change frequencies.

package sitemap

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Frequency is how often a page is said to change.
type Frequency uint8

// The frequencies of sitemaps.org.
const (
	Unstated Frequency = iota
	Always             // at each look
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

// isoLayouts are the layouts of the W3C's "Date and Time Formats" and of XML Schema, and common variants.
var isoLayouts = []string{
	time.RFC3339, "2006-01-02", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01", "2006", "20060102", "20060102T150405Z", "20060102T150405Z0700",
	"2006-01-02Z07:00", "2006-01Z07:00", "2006Z07:00", "2006-01-02T15Z07:00", "2006-1-2", "2006-1-2T15:04", "2006-1-2T15:04:05", "2006-1-2T15:04:05Z07:00",
}

// dayLayouts and clockLayouts combine to the layouts of RFC 822, RFC 5322 and RFC 850, of programs, and
// of people, without the day of the week and commas.
var (
	dayLayouts   = []string{"2 Jan 2006", "2 Jan 06", "Jan 2 2006", "2-Jan-2006", "2-Jan-06", "2.1.2006"}
	clockLayouts = []string{"", " 15:04:05 -0700", " 15:04 -0700", " 15:04:05", " 15:04", " 3:04 PM", " 3:04:05 PM", " -0700"}
	// yearLast are the layouts of C's asctime and Unix' date.
	yearLast = []string{"Jan 2 15:04:05 2006", "Jan 2 15:04:05 -0700 2006"}
)

// zones are the zones of RFC 822, and others with the same meaning everywhere.
var zones = map[string]string{
	"GMT": "+0000", "UT": "+0000", "UTC": "+0000", "Z": "+0000", "WET": "+0000", "EST": "-0500", "EDT": "-0400",
	"CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700", "AKST": "-0900", "AKDT": "-0800",
	"CET": "+0100", "CEST": "+0200", "MEZ": "+0100", "MESZ": "+0200", "WEST": "+0100", "EET": "+0200", "EEST": "+0300",
	"MSK": "+0300", "JST": "+0900", "KST": "+0900", "AEST": "+1000", "AEDT": "+1100", "NZST": "+1200", "NZDT": "+1300",
}

// parseDate reads a date in any of the layouts. Without a zone it is taken as UTC.
func parseDate(s string) (time.Time, bool) {
	if len(s) > 96 {
		return time.Time{}, false
	}
	s = strings.ToUpper(strings.Join(strings.Fields(s), " "))
	if s == "" {
		return time.Time{}, false
	}
	if isDigits(s) && (len(s) == 10 || len(s) == 13) { // seconds or milliseconds since 1970
		n, err := strconv.ParseInt(s, 10, 64)
		if len(s) == 10 {
			n *= 1000
		}
		return time.UnixMilli(n).UTC(), err == nil
	}
	if isDigits(s[:min(4, len(s))]) {
		iso := s
		for zone, offset := range zones {
			if rest, ok := strings.CutSuffix(s, " "+zone); ok {
				iso = rest + offset
			}
		}
		if len(iso) > 4 && iso[4] == '/' {
			iso = strings.Replace(iso, "/", "-", 2)
		}
		if day, clock, ok := strings.Cut(iso, " "); ok {
			iso = day + "T" + strings.ReplaceAll(clock, " ", "")
		}
		return parseAny(iso, isoLayouts)
	}
	s = tidied(s)
	if t, ok := parseAny(s, yearLast); ok {
		return t, true
	}
	for _, day := range dayLayouts {
		for _, clock := range clockLayouts {
			if t, err := time.Parse(day+clock, s); err == nil {
				return t.UTC(), true
			}
		}
	}
	return time.Time{}, false
}

func parseAny(s string, layouts []string) (time.Time, bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// tidied returns a date in upper case without parts that carry no information: the day of the week in any
// language, names in brackets, commas, the rest of a month's name. A zone becomes its offset.
func tidied(s string) string {
	s, _, _ = strings.Cut(s, "(")
	if day, rest, ok := strings.Cut(s, ","); ok && !strings.ContainsAny(day, "0123456789") {
		s = rest
	}
	var out []string
	for _, w := range strings.Fields(strings.ReplaceAll(s, ",", " ")) {
		letters := strings.TrimRight(w, ".")
		month := slices.IndexFunc(months, func(m string) bool {
			return len(letters) >= 3 && strings.HasPrefix(m, letters) || letters == "SEPT" && m == "SEPTEMBER"
		})
		offset, zone := zones[w]
		ahead, ok := strings.CutPrefix(w, "GMT")
		if !ok {
			ahead, ok = strings.CutPrefix(w, "UTC")
		}
		switch {
		case month >= 0:
			w = months[month][:3]
		case zone:
			w = offset
		case ok && len(ahead) > 1:
			w = ahead
		case len(out) == 0 && strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ.") == "":
			continue // a day of the week
		}
		if len(w) == 6 && w[3] == ':' && (w[0] == '+' || w[0] == '-') {
			w = w[:3] + w[4:]
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

var months = []string{"JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"}
