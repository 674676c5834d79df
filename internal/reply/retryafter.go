// This file reads Retry-After.

package reply

import (
	"net/http"
	"strings"
	"time"
)

// MaxRetryAfter is the longest Retry-After that is believed; longer ones count
// as this.
const MaxRetryAfter = 30 * 24 * time.Hour

// RetryAfter reads the Retry-After of an answer that came now: seconds or a date. A date is of the site's
// clock, so what is left until that is reckoned from the answer's Date, or else from now; it is rounded up
// to milliseconds. Nonsense, the past and negative numbers are 0.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	s := strings.TrimSpace(h.Get("Retry-After"))
	if s == "" {
		return 0
	}
	if strings.Trim(s, "0123456789") == "" {
		secs := int64(0)
		for _, c := range s {
			if secs = secs*10 + int64(c-'0'); secs > int64(MaxRetryAfter/time.Second) {
				return MaxRetryAfter
			}
		}
		return time.Duration(secs) * time.Second
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	left := min(max(t.Sub(now), 0), MaxRetryAfter)
	return (left + time.Millisecond - 1).Truncate(time.Millisecond)
}
