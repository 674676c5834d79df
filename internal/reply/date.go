// This file reads dates as browsers do.

package reply

import (
	"errors"
	"net/http"
	"net/mail"
	"strings"
	"time"
)

var errDate = errors.New("not a date")

// layouts are those of RFC 3339, and what comes close to it.
var layouts = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05"}

// Date reads a date in a header field: one of RFC 9110, RFC 5322 or RFC 3339, or else whatever RFC 6265 takes
// for a date. Without a zone it is in UTC.
func Date(s string) (time.Time, error) {
	if s = strings.TrimSpace(s); s == "" {
		return time.Time{}, errDate
	}
	if t, err := http.ParseTime(s); err == nil {
		return t, nil
	}
	if t, err := mail.ParseDate(s); err == nil {
		return t.UTC(), nil
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, strings.ToUpper(s)); err == nil {
			return t.UTC(), nil
		}
	}
	return CookieDate(s)
}

// CookieDate reads the date in a cookie: RFC 6265 section 5.1.1. Its zone, if it names one, is taken for UTC.
func CookieDate(s string) (time.Time, error) {
	var clock [3]int
	day, month, year := 0, 0, -1
	timed := false
	for token := range strings.FieldsFuncSeq(s, dateDelimiter) {
		n, digits := leadingNumber(token)
		switch hms, ok := clockOf(token); {
		case !timed && ok:
			clock, timed = hms, true
		case day == 0 && (digits == 1 || digits == 2):
			if day = n; day < 1 {
				return time.Time{}, errDate
			}
		case month == 0 && monthOf(token) > 0:
			month = monthOf(token)
		case year < 0 && digits >= 2 && digits <= 4:
			year = n
		}
	}
	switch {
	case year >= 70 && year <= 99:
		year += 1900
	case year >= 0 && year <= 69:
		year += 2000
	}
	t := time.Date(year, time.Month(month), day, clock[0], clock[1], clock[2], 0, time.UTC)
	if !timed || month == 0 || day == 0 || year < 1601 || clock[0] > 23 || clock[1] > 59 || clock[2] > 59 || t.Day() != day {
		return time.Time{}, errDate
	}
	return t, nil
}

func dateDelimiter(r rune) bool {
	return r == '\t' || r >= ' ' && r <= '/' || r >= ';' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
}

// leadingNumber is the number at the beginning of a token, and how many digits it has; 0 if more than four.
func leadingNumber(token string) (n, digits int) {
	for digits < len(token) && token[digits] >= '0' && token[digits] <= '9' {
		if digits == 4 {
			return 0, 0
		}
		n = n*10 + int(token[digits]-'0')
		digits++
	}
	return n, digits
}

// clockOf reads hours, minutes and seconds, of one or two digits each.
func clockOf(token string) (hms [3]int, ok bool) {
	for i := range hms {
		n, digits := leadingNumber(token)
		if digits < 1 || digits > 2 {
			return hms, false
		}
		hms[i], token = n, token[digits:]
		if i < 2 {
			if token, ok = strings.CutPrefix(token, ":"); !ok {
				return hms, false
			}
		}
	}
	return hms, true
}

func monthOf(token string) int {
	const names = "jan feb mar apr may jun jul aug sep oct nov dec"
	if len(token) < 3 {
		return 0
	}
	i := strings.Index(names, strings.ToLower(token[:3]))
	if i < 0 || i%4 != 0 {
		return 0
	}
	return i/4 + 1
}
