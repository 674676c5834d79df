package plan_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/recrawl/plan"
)

// The paper's advice: strategy 2 in early cycles drives the number of obsolete pages
// down, strategies 1 and 3 keep it stable from there.
func TestAStrategyPerCycle(t *testing.T) {
	for _, then := range []plan.Strategy{plan.Even, plan.Mixed} {
		m := plan.WebFountain(1, 14, plan.Even)
		for i, b := range m.Pages {
			m.Obsolete[i] = 0.5 * b // a copy in a bad state
		}
		strategies := []plan.Strategy{plan.Last, then, then}
		plans, err := m.Cycles(context.Background(), plan.Options{Prices: 20, Sweeps: 20}, strategies...)
		require.NoError(t, err)
		require.Len(t, plans, 3)
		at := *m
		for n, p := range plans {
			at.Weigh(strategies[n])
			check(t, &at, p)
			assert.InEpsilonSlice(t, at.Pages, p.Pages[0], 1e-12, "a cycle begins as the last one ended")
			at = *at.Next(p)
		}
		first, second, third := plans[0].Stale(), plans[1].Stale(), plans[2].Stale()
		assert.Less(t, first[14], 0.1*first[0])
		assert.Equal(t, first[14], second[0])
		for day := 1; day <= 14; day++ {
			assert.Less(t, third[day], first[0]/4, "strategy %d, day %d", then, day)
		}
		assert.InEpsilon(t, second[14], third[14], 0.2, "stable")
		assert.Equal(t, 0.5*m.Pages[0], m.Obsolete[0], "the model is as it was")
	}
}

func TestCyclesEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	plans, err := plan.WebFountain(1, 14, plan.Even).Cycles(ctx, plan.Options{}, plan.Last, plan.Even)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, plans)
}
