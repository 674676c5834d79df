package reply

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The dates are those of RFC 6265 section 5.1.1, and of servers.
func TestCookieDate(t *testing.T) {
	want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, s := range []string{
		"Fri, 02 Jan 2026 03:04:05 GMT", "Fri, 02-Jan-2026 03:04:05 GMT", "Friday, 02-Jan-26 03:04:05 GMT", "Fri Jan  2 03:04:05 2026", "2 jan 26 3:4:5",
		"Fri, 02 Jan 2026 03:04:05 CEST", "2026 January 02nd 03:04:05pm", "02 Jan 2026 03:04:05x 99", "\"Fri, 02 Jan 2026 03:04:05 GMT\"",
	} {
		got, err := CookieDate(s)
		assert.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for _, s := range []string{
		"", "0", "Session", "02 Jan 2026", "02 Jan 2026 24:00:00", "02 Jan 2026 03:60:00", "31 Feb 2026 03:04:05", "00 Jan 2026 03:04:05", "02 Jan 1600 03:04:05",
		"02 Foo 2026 03:04:05", "02 Jan 20266 03:04:05", "02 Jan 2026 003:04:05", "02 Jan 03:04:05",
	} {
		_, err := CookieDate(s)
		assert.Error(t, err, s)
	}
	for s, year := range map[string]int{"02 Jan 70 03:04:05": 1970, "02 Jan 99 03:04:05": 1999, "02 Jan 00 03:04:05": 2000, "02 Jan 69 03:04:05": 2069} {
		got, err := CookieDate(s)
		assert.NoError(t, err, s)
		assert.Equal(t, year, got.Year(), s)
	}
}

func TestWhatAsksForLess(t *testing.T) {
	for status, want := range map[int]bool{200: false, 403: false, 404: false, 420: true, 429: true, 430: true, 500: false, 503: false, 999: true} {
		assert.Equal(t, want, AsksForLess(status, 0), status)
	}
	for status, want := range map[int]bool{200: false, 301: false, 403: true, 404: false, 410: false, 418: true, 503: false} {
		assert.Equal(t, want, AsksForLess(status, time.Second), status)
	}
}

func FuzzDate(f *testing.F) {
	for _, s := range []string{http.TimeFormat, time.RFC3339, "Friday, 02-Jan-26 03:04:05 GMT", "2 jan 26 3:4:5", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := CookieDate(s); err == nil && (d.Year() < 1601 || d.Year() > 9999) {
			t.Error(d)
		}
	})
}
