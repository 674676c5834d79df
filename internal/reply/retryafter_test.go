package reply

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func after(s string) http.Header { return http.Header{"Retry-After": {s}} }

// A date is of the site's clock, which may be another than ours.
func TestRetryAfterByTheSitesClock(t *testing.T) {
	const until, date = "Fri, 02 Jan 2026 03:05:05 GMT", "Fri, 02 Jan 2026 03:04:05 GMT"
	for _, ours := range []time.Duration{-time.Hour, -1500 * time.Millisecond, 0, time.Minute, time.Hour} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(ours)
		assert.Equal(t, time.Minute, RetryAfter(http.Header{"Retry-After": {until}, "Date": {date}}, now), "%v ahead", ours)
		assert.Equal(t, max(0, time.Minute-ours), RetryAfter(http.Header{"Retry-After": {until}, "Date": {"today"}}, now))
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "-5": 0, "1.5": 1500 * time.Millisecond, "soon": 0, "+3": 3 * time.Second,
		"15.0": 15 * time.Second, "15, 15": 15 * time.Second, "1, 120": 2 * time.Minute, "15s": 15 * time.Second, "2 minutes": 2 * time.Minute, "500 ms": 500 * time.Millisecond,
		"15;": 15 * time.Second, `"15"`: 15 * time.Second, ".5": 500 * time.Millisecond, "1e3": time.Second, ".": 0, "1 h": time.Hour, "0.0000001": time.Millisecond,
		"1767323105": time.Minute, "1767323000": 0, // seconds since 1970
		"2026-01-02T03:05:05Z": time.Minute, "2026-01-02t05:05:05+02:00": time.Minute, "2026-01-02 03:05:05": time.Minute, "Fri, 02 Jan 2026 03:05:05 +0000": time.Minute,
		"Fri, 2 Jan 2026 04:05:05 +0100": time.Minute, "Friday, 02-Jan-26 03:05:05 GMT": time.Minute, "Fri Jan  2 03:05:05 2026": time.Minute, "Fri, 02-Jan-2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:05:05 UTC": time.Minute, "2 January 2026, 3:5:5": time.Minute,
		"99999999999999999999999": MaxRetryAfter, "99999999999": MaxRetryAfter,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:04:05 GMT": 0,
		"Thu, 01 Jan 2026 03:05:05 GMT": 0, "Fri, 02 Jan 2126 03:05:05 GMT": MaxRetryAfter, "Friday": 0,
	} {
		assert.Equal(t, want, RetryAfter(after(in), now), "%q", in)
	}
	assert.Equal(t, 2*time.Minute, RetryAfter(http.Header{"Retry-After": {"1", "120", "soon"}}, now), "the longest of several")
	const inAMoment = "Fri, 02 Jan 2026 03:04:06 GMT"
	assert.Equal(t, time.Millisecond, RetryAfter(after(inAMoment), now.Add(time.Second-1)), "rounded up")
	assert.Zero(t, RetryAfter(after(inAMoment), now.Add(time.Second)))
	assert.Equal(t, MaxRetryAfter, RetryAfter(after("Fri, 31 Dec 9999 03:04:06 GMT"), now))
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "-1", "1e9", "99999999999999999999", "Fri, 02 Jan 2026 03:05:05 GMT", "Friday, 02-Jan-26 03:05:05 GMT", "Fri Jan  2 03:05:05 2026", "\x00"} {
		f.Add(s)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if d := RetryAfter(after(s), now); d < 0 || d > MaxRetryAfter {
			t.Errorf("%v", d)
		}
	})
}
