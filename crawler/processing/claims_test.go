// This file tests what claims of sitemaps become.

package processing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/sitemap"
)

func TestClaims(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for _, c := range []struct {
		name     string
		modified time.Time
		hint     bool
	}{
		{"none", time.Time{}, false},
		{"an hour ago", at(-time.Hour), true},
		{"tomorrow, of a clock that is ahead", at(20 * time.Hour), true},
		{"next week", at(7 * 24 * time.Hour), false},
		{"before there were computers", time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), false},
	} {
		var e frontier.Entry
		assert.True(t, Claims(&e, sitemap.Entry{Modified: c.modified, Priority: 1}), c.name)
		assert.Equal(t, c.hint, e.Hint, c.name)
		assert.Equal(t, c.hint, !e.NotBefore.IsZero(), c.name)
		assert.False(t, e.NotBefore.After(time.Now()), "a URL that is not known would wait: %s", c.name)
		assert.Zero(t, e.Weight, c.name)
	}
}
