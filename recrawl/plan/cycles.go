// This file plans one cycle after another.

package plan

import (
	"context"
	"fmt"
	"slices"
)

// Next is the model of the cycle after one that went as p plans it: it begins with
// p's last pages, obsolete pages and new pages. All else is as in m: change it by
// what was learned in between, the change rates above all.
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

// Cycles plans a cycle with each of the strategies, one after the other: the paper's
// advice is Last in the early ones, to drive down the number of obsolete pages
// quickly, then Even or Mixed to keep it stable. Old pages of a bucket weigh alike;
// weights of m's own are not used. When ctx ends it returns the plans so far, with
// ctx's error.
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
