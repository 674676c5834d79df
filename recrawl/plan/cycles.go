// This file plans one cycle after another.

package plan

import (
	"context"
	"fmt"
	"slices"
)

// Next returns the model of the cycle after p: it begins with the pages, obsolete pages and new
// pages at the end of p. Everything else is as in m; change what was learned in between, above all
// the change rates.
func (m *Model) Next(p *Plan) *Model {
	next := *m
	next.Pages = slices.Clone(p.Pages[m.Periods])
	next.Obsolete = slices.Clone(p.Obsolete[m.Periods])
	for i, y := range next.Obsolete { // rounding
		next.Obsolete[i] = min(max(0, y), next.Pages[i])
	}
	next.New = max(0, p.Known[m.Periods])
	return &next
}

// Cycles plans one cycle with each of the strategies, in order. The paper advises Last in early
// cycles, to reduce the number of obsolete pages quickly, then Even or Mixed to keep it stable. Old
// pages of all buckets weigh the same; the weights of m are not used. When ctx ends, Cycles returns
// the plans made so far and the error of ctx.
func (m *Model) Cycles(ctx context.Context, o Options, each ...Strategy) ([]*Plan, error) {
	var plans []*Plan
	at := *m
	for n, s := range each {
		at.Weigh(s)
		p, err := Solve(ctx, &at, o)
		if err != nil {
			return plans, fmt.Errorf("plan: cycle %d: %w", n+1, err)
		}
		plans = append(plans, p)
		at = *at.Next(p)
	}
	return plans, nil
}
