package recrawlsim_test

import (
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/internal/lab/recrawlsim"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The thresholds are those of docs/recrawl.md, slightly lower for so few pages. With known rates
// the policy is the optimum; with learned rates it is near. In "polite" a host with so few pages
// may be contacted every ten hours: too seldom for probes.
func TestRatioToTheOptimum(t *testing.T) {
	bars := map[string]struct{ known, learned, start float64 }{
		"plain": {0.99, 0.98, 0.92}, "weights": {0.985, 0.975, 0.92}, "web": {0.985, 0.97, 0.91},
		"tight": {0.98, 0.94, 0.75}, "polite": {0.97, 0.94, 0.7}, "drift": {0.97, 0.94, 0.9},
	}
	for _, s := range recrawlsim.Scenarios(1200, 1) {
		best := recrawlsim.Optimum(s)
		known := recrawlsim.Run(s, recrawlsim.OursKnown)
		learned := recrawlsim.Run(s, recrawlsim.Ours)
		uniform := recrawlsim.Run(s, recrawlsim.Uniform)
		bar := bars[s.Name]
		assert.Greater(t, known.Score/best, bar.known, s.Name)
		assert.Greater(t, learned.Score/best, bar.learned, s.Name)
		assert.Greater(t, learned.Start/best, bar.start, s.Name)
		assert.Greater(t, learned.Score, uniform.Score, s.Name)
		if s.Name != "polite" {
			assert.Less(t, float64(learned.Spam), 0.03*float64(learned.Fetches), s.Name)
		}
	}
}

func TestUnderAttack(t *testing.T) {
	for _, s := range recrawlsim.Attacks(1200, 1) {
		learned, uniform := recrawlsim.Run(s, recrawlsim.Ours), recrawlsim.Run(s, recrawlsim.Uniform)
		assert.Greater(t, learned.Score, 1.04*uniform.Score, s.Name)
		assert.Less(t, float64(learned.Spam), 0.03*float64(learned.Fetches), s.Name)
		assert.Less(t, recrawlsim.Swing(learned.Prices, 160), 0.1, s.Name)
	}
}

// Weights that importance estimates from links keep spam out, nearly as the true weights do, and the copy nearly as
// fresh.
func TestEstimatedWeights(t *testing.T) {
	s := recrawlsim.Attacks(2000, 1)[4]
	best := recrawlsim.Optimum(s)
	for _, x := range []struct {
		name   string
		policy func(*recrawlsim.Web) recrawlsim.Policy
		spam   float64
		score  float64
	}{
		{"true", recrawlsim.True, 0.01, 0.98},
		{"links", recrawlsim.Estimated(importance.Links, 0.5), 0.02, 0.93},
		{"trust", recrawlsim.Estimated(importance.Trust, 0.5), 0.02, 0.93},
		{"links, all spam looks useful", recrawlsim.Estimated(importance.Links, 0), 0.02, 0.93},
		{"trust, all spam looks useful", recrawlsim.Estimated(importance.Trust, 0), 0.02, 0.93},
	} {
		r := recrawlsim.Run(s, x.policy)
		spam := float64(r.Spam) / float64(r.Fetches)
		t.Logf("%s: spam %.2f %%, %.3f of the best", x.name, 100*spam, r.Score/best)
		assert.LessOrEqual(t, spam, x.spam, x.name)
		assert.Greater(t, r.Score/best, x.score, x.name)
	}
}

// Ours with a real frontier, which waits when nothing is due.
func TestARealFrontierKeepsTheCopyAsFresh(t *testing.T) {
	for _, s := range recrawlsim.Scenarios(600, 1)[2:5:5] {
		if s.Name == "tight" {
			continue
		}
		best := recrawlsim.Optimum(s)
		r, err := recrawlsim.RunFrontier(s, frontier.Options{})
		require.NoError(t, err)
		alone := recrawlsim.Run(s, recrawlsim.Ours)
		assert.Greater(t, r.Score/best, alone.Score/best-0.04, s.Name)
		assert.Greater(t, float64(r.Fetches), 0.8*float64(alone.Fetches), s.Name)
	}
}

// With sixty pages and two fetches a day no probe comes in time.
func TestBudgetsTooSmallForProbesInTime(t *testing.T) {
	spam, fetches := 0, 0
	for seed := range uint64(20) {
		r := recrawlsim.Run(recrawlsim.Scenarios(60, seed+1)[3], recrawlsim.Ours)
		spam, fetches = spam+r.Spam, fetches+r.Fetches
	}
	assert.Less(t, float64(spam), 0.04*float64(fetches))
}
