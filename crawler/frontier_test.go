// These tests run a Crawler on a frontier that has no more methods than Frontier.

package crawler

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
)

// leastOf returns a frontier that has no more than a Crawler must have.
func leastOf(f *frontier.Frontier) Frontier {
	d, _ := inspect.Of[described](f)
	return struct{ described }{d}
}

func TestFrontierMustDescribeItsHosts(t *testing.T) {
	f := openFrontier(t, frontier.Options{})
	_, err := New(struct{ Frontier }{f}, Options{UserAgent: "testbot/1.0 (+http://contact.example/)"})
	require.ErrorContains(t, err, "does not describe its hosts")
}

func TestSmallestFrontierHasNoGroupSettings(t *testing.T) {
	f := openFrontier(t, frontier.Options{})
	_, err := New(leastOf(f), Options{UserAgent: "testbot/1.0 (+http://contact.example/)", Groups: Groups{Concurrency: 2}})
	require.ErrorContains(t, err, "Groups.Concurrency is 2; want at most 1")
}

// What would be parked is dropped, and the log says so.
func TestSmallestFrontierDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := twentyPages()
		f := openFrontier(t, frontier.Options{})
		least := leastOf(f)
		p := ran(t, least, w, Options{MaxPages: 5}, false, seed)
		require.Positive(t, p.Frontier.Waiting)
		var log bytes.Buffer
		p = ran(t, least, w, Options{Scope: Scope{Hosts: []string{"b.example"}}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, true, "http://b.example/")
		assert.Equal(t, []int64{1, 0, 0}, []int64{p.Pages, p.Parked, p.Frontier.Waiting})
		assert.Contains(t, log.String(), "a URL is dropped: its frontier")
	})
}
