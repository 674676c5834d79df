// This file reads what an answer says about the pace: Retry-After, and statuses.

package reply

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest Retry-After that is believed; longer ones count as this.
const MaxRetryAfter = 30 * 24 * time.Hour

// RetryAfter reads the Retry-After of an answer that came now: seconds or a date, in the forms that Wait and
// Date read, or a number of seconds since 1970. A date is of the site's clock, so what is left until that is
// reckoned from the answer's Date, or else from now; it is rounded up to milliseconds. Of several values the
// longest counts. Nonsense, the past and negative numbers are 0.
func RetryAfter(h http.Header, now time.Time) (longest time.Duration) {
	if date, err := Date(h.Get("Date")); err == nil {
		now = date
	}
	for _, s := range h.Values("Retry-After") {
		s = strings.Trim(s, " \t\"")
		if t, err := Date(s); err == nil {
			longest = max(longest, until(t, now))
			continue
		}
		for part := range strings.SplitSeq(s, ",") {
			part = strings.TrimSpace(part)
			wait, _ := Wait(part, MaxRetryAfter)
			if n, err := strconv.ParseInt(part, 10, 64); err == nil && time.Unix(n, 0).Sub(now).Abs() <= MaxRetryAfter {
				wait = until(time.Unix(n, 0), now)
			}
			longest = max(longest, wait)
		}
	}
	return longest
}

func until(t, now time.Time) time.Duration {
	left := min(max(t.Sub(now), 0), MaxRetryAfter)
	return (left + time.Millisecond - 1).Truncate(time.Millisecond)
}

// units are the seconds of the units that sites write behind a number.
var units = map[string]float64{
	"ms": .001, "msec": .001, "msecs": .001, "millis": .001, "millisecond": .001, "milliseconds": .001,
	"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
	"d": 86400, "day": 86400, "days": 86400,
}

// Wait reads a number of seconds as sites write it: with a fraction, or with a unit behind it, from
// milliseconds to days. Other text behind it is ignored. A wait above 0 is a millisecond at least, and most
// at most. ok is false if s does not begin with a number.
func Wait(s string, most time.Duration) (_ time.Duration, ok bool) {
	s = strings.TrimPrefix(s, "+")
	number := s[:len(s)-len(strings.TrimLeft(s, "0123456789."))]
	if whole, fraction, more := strings.Cut(number, "."); more {
		fraction, _, _ = strings.Cut(fraction, ".")
		number = whole + "." + fraction
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil && n == 0 {
		return 0, false
	}
	unit := strings.ToLower(strings.TrimLeft(s[len(number):], " \t"))
	unit = unit[:len(unit)-len(strings.TrimLeft(unit, "abcdefghijklmnopqrstuvwxyz"))]
	if per, known := units[unit]; known {
		n *= per
	}
	switch {
	case n >= most.Seconds():
		return most, true
	case n <= 0:
		return 0, true
	}
	return max(time.Millisecond, time.Duration(n*float64(time.Second))), true
}

// AsksForLess reports whether a status asks for fewer requests: 429 (RFC 6585), or what some services answer
// in its place: 420 (Twitter), 430 (Shopify), 999 (LinkedIn). So does any other 4xx with a Retry-After, which
// says when to come again, except 404 and 410: they say that there is nothing to come for.
func AsksForLess(status int, retryAfter time.Duration) bool {
	switch status {
	case http.StatusTooManyRequests, 420, 430, 999:
		return true
	case http.StatusNotFound, http.StatusGone:
		return false
	}
	return status >= 400 && status < 500 && retryAfter > 0
}
