package plan_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier/recrawl/plan"
)

// Three kinds of pages, a week, and a thousand crawls a day.
func ExampleSolve() {
	m := &plan.Model{
		Periods: 7,
		Pages:   []float64{2000, 2000, 2000},
		Change:  []plan.Series{{0.9}, {0.3}, {0.02}},
		Budget:  plan.Series{1000},
		FindOld: []plan.Series{{0.01}},
	}
	m.Weigh(plan.Even)
	p, err := plan.Solve(context.Background(), m, plan.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.0f obsolete pages a day, no plan has less than %.0f\n", p.Objective/7, p.Bound/7)
	fmt.Printf("crawls of a page in the week: %.1f\n", p.Crawls())
	_, share := p.Probabilities(7)
	fmt.Printf("share of new pages on the last day: %.2f\n", share)
	budget, _, err := m.Cover()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("to see every page within the week: %.0f crawls a day\n", budget)
	// Output:
	// 2329 obsolete pages a day, no plan has less than 2244
	// crawls of a page in the week: [2.5 1.0 0.0]
	// share of new pages on the last day: 0.01
	// to see every page within the week: 864 crawls a day
}
