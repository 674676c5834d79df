// This file says which part of the importance that is known was fetched.

package importance

import "sync/atomic"

// flow adds up the cash of the URLs that wait or were fetched. The cash of a URL counts from when it is
// known that the URL waits: its first share when it is admitted, the others when Rise or a visit finds
// them. What links give to pages that were fetched does not count.
type flow struct {
	all, visited atomic.Int64 // in units
}

const flowUnit = 1 << 32 // of a seed's cash; two billion of them fit

func (f *flow) known(cash float64)   { f.all.Add(int64(cash * flowUnit)) }
func (f *flow) fetched(cash float64) { f.visited.Add(int64(cash * flowUnit)) }

// covered returns the part of the known cash that was fetched, 0 to 1.
func (f *flow) covered() float64 {
	visited, all := f.visited.Load(), f.all.Load()
	if visited <= 0 {
		return 0
	}
	return float64(visited) / float64(max(visited, all))
}
