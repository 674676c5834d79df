// This file counts links in four bits.

package importance

import "math"

// count is a number of links: exact up to 4, then one of the steps between which it moves at random, so
// that its mean is right (Morris, "Counting large numbers of events in small registers", 1978).
type count uint8

// steps are 1, 2, 3, 4, and then powers of the root of two.
var steps = func() (s [mostCount + 1]float64) {
	for i := range s {
		s[i] = max(float64(i+1), 4*math.Pow(2, float64(i-3)/2))
		if i < 4 {
			s[i] = float64(i + 1)
		}
	}
	return s
}()

const oneLink count = 0

const mostCount = 13 // 128 links

// links returns the number that c stands for.
func (c count) links() float64 { return steps[c] }

// add returns the count after more links.
func (c count) add(links float64, d *dice) count { return nearest(steps[c]+links, d) }

// nearest returns one of the two counts around a number of links, with the probabilities that make its
// mean right.
func nearest(links float64, d *dice) count {
	if !(links > 1) {
		return oneLink
	}
	i := 1
	for i < len(steps) && steps[i] < links {
		i++
	}
	switch {
	case i > mostCount:
		return mostCount
	case steps[i] == links:
		return count(i)
	}
	if below := steps[i-1]; d.roll()*(steps[i]-below) >= links-below {
		return count(i - 1)
	}
	return count(i)
}
