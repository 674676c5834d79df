// This file measures how steady a price is.

package recrawlsim

import "math"

// Swing returns the largest relative deviation of the daily prices, from a day on, from their
// trend, the mean of the 14 days before and after.
func Swing(prices []float64, from int) float64 {
	worst := 0.
	for i := max(from, 14); i+14 < len(prices); i++ {
		sum := 0.
		for _, p := range prices[i-14 : i+15] {
			sum += math.Log(p)
		}
		worst = max(worst, math.Abs(math.Log(prices[i])-sum/29))
	}
	return math.Expm1(worst)
}
