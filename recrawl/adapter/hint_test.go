// This file tests what becomes of hints.

package adapter_test

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/recrawl/adapter"
	"github.com/stretchr/testify/require"
)

// A page that is found again takes its new weight, and its host's claims are heard.
func TestHints(t *testing.T) {
	s, err := recrawl.New(recrawl.Options{Budget: 4. / 86400})
	require.NoError(t, err)
	x := adapter.New(s, adapter.Options{})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var page frontier.History
	for range 100 {
		page.State = frontier.State{}
		_, page.State = x.Next(frontier.Visit{Host: "a.example", Outcome: frontier.Outcome{Ended: now}})
	}
	page.Visits = 1
	due := x.PageOf("a.example", page).Due
	known := frontier.Entry{URL: "http://a.example/", NotBefore: due}
	now = now.Add(2 * time.Hour)
	require.True(t, due.After(now))
	require.Equal(t, frontier.Hinted{Keep: page.State}, x.Hint(known, frontier.Entry{NotBefore: now.Add(48 * time.Hour)}, "a.example", page, now), "a claim of a time to come")
	require.Equal(t, frontier.Hinted{Keep: page.State}, x.Hint(known, frontier.Entry{}, "a.example", page, now), "no claim")
	claim := frontier.Entry{NotBefore: now.Add(-time.Hour)}
	require.Equal(t, frontier.Hinted{}, x.Hint(known, claim, "a.example", frontier.History{}, now), "of a page never visited")
	said := x.Hint(known, claim, "a.example", page, now)
	require.True(t, said.Due.Equal(now), "%v", said.Due)
	known.Weight = 50
	heavier := x.Hint(known, frontier.Entry{}, "a.example", page, now)
	require.InEpsilon(t, 50, x.PageOf("a.example", frontier.History{State: heavier.Keep}).State.Weight(), 0.1)
	require.True(t, heavier.Due.Before(due), "%v", heavier.Due)
}
