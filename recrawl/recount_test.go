package recrawl

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The books made anew are those that were kept.
func TestRecount(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := New(Options{Budget: 1e-3, Seed: 1})
	require.NoError(t, err)
	require.NoError(t, s.SetHostRate(1, 1e-4))
	var pages []Page
	for i := range 500 {
		p, _ := s.Admit(1+float64(i%7), uint32(i%5), start)
		pages = append(pages, p)
	}
	for round := range 5 {
		for i := range 400 {
			o := Unchanged
			if (i+round)%3 == 0 {
				o = Changed
			}
			pages[i], _ = s.Done(pages[i], Visit{At: start.Add(time.Duration(24*round) * time.Hour), Outcome: o})
		}
	}
	want := s.Stats()
	s.Recount(slices.Values(pages))
	got := s.Stats()
	assert.Equal(t, want.Pages, got.Pages)
	assert.EqualValues(t, 400, got.Pages)
	assert.Equal(t, want.NewPages, got.NewPages)
	assert.InEpsilon(t, want.Promised, got.Promised, 1e-6)
	assert.Equal(t, want.Price, got.Price)
	assert.Equal(t, want.Budget, got.Budget)
}
