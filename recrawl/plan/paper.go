// This file holds the inputs of the paper's experiments, as far as they can be reconstructed.

package plan

import "math"

// WebFountain returns the model of the paper's experiments: 255 buckets, a version of its data (1:
// 2 million pages in each bucket; 2: 3 million in the quarters that change most and least, 1
// million in the others; 3: as 1, changing half as often), a number of periods of one day (the
// paper: 14, and 28), and a strategy.
//
// The paper does not state the change rates, the budget, the obsolete pages at the start, how new
// pages are found, nor the low weight of strategy 3. The values here reproduce its tables with a
// root mean square error of 1.5 % in 15 numbers; no other family of change rates tried came within
// 10 %. Bucket i changes once in i days, 51.5 million pages can be crawled per day, a quarter of
// one day's changes has happened at the start, and each crawl of an old page finds 0.0185 new ones.
// It cannot be proved that these are the authors' inputs.
func WebFountain(version, periods int, s Strategy) *Model {
	const buckets, budget, growth = 255, 51.5e6, 12.4e6 / 13 / 51.5e6
	m := &Model{Periods: periods, Budget: Series{budget}, FindOld: []Series{{growth}}}
	for i := range buckets {
		pages := 2e6
		if version == 2 {
			pages = 3e6
			if i >= 64 && i < 64+128 {
				pages = 1e6
			}
		}
		a := 1 / float64(i+1)
		if version == 3 {
			a /= 2
		}
		m.Pages = append(m.Pages, pages)
		m.Change = append(m.Change, Series{a})
		m.Obsolete = append(m.Obsolete, pages*(1-math.Pow(1-a, 0.25)))
	}
	m.Weigh(s)
	return m
}
