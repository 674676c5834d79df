// This file decides which hosts sink because their pages are of no use.

package importance

import "math"

// hosts knows which part of each host's pages was useful.
type hosts struct {
	table *table[uint64]
	most  int // levels that a host may sink
}

// tally is the value of a host's cell: its pages and useful pages, 12 bits each, how many levels it
// has sunk, 7 bits, and whether one missing page is still to be made up for.
type tally uint64

const (
	tallyWidth = 32
	mostPages  = 1<<12 - 1
	// vouched is how many useful pages each host is taken to have had: a small host does not sink by
	// one bad page.
	vouched = 9

	odd tally = 1 << (tallyWidth - 1) // an odd number of pages were missing
)

func newTally(pages, useful, sunk int) tally { return tally(pages | useful<<12 | sunk<<24) }

func (t tally) pages() int  { return int(t & mostPages) }
func (t tally) useful() int { return int(t >> 12 & mostPages) }
func (t tally) sunk() int   { return int(t >> 24 & 127) }

// share is the part of the host's pages that is useful.
func (t tally) share() float64 {
	return float64(t.useful()+vouched) / float64(t.pages()+vouched)
}

// with returns the tally after one more page. Of two that are missing, one counts as useful.
func (t tally) with(useful, missing bool, most int) tally {
	if missing {
		useful = useful || t&odd != 0
		t ^= odd
	}
	pages, good, sunk := t.pages()+1, t.useful(), t.sunk()
	if useful {
		good++
	}
	if pages > mostPages { // hosts change: what is long ago counts half
		pages, good = pages/2, good/2
	}
	after := newTally(pages, good, sunk)
	// It costs two levels for each halving, none above 84 %. It stays where it is in between, so
	// that it does not go up and down with every page.
	if depth := -2 * math.Log2(after.share()); math.Abs(depth-float64(sunk)) > 0.75 {
		after = newTally(pages, good, min(most, int(math.Round(depth))))
	}
	return after | t&odd
}

func newHosts(bytes int64, levels int, d *dice) *hosts {
	return &hosts{newTable(bytes, 8, tallyWidth, func(v uint64) float64 {
		t := tally(v)
		if t.sunk() > 0 { // it would not be known what to take back
			return math.MaxFloat32
		}
		return float64(t.pages())
	}, d), levels - 1}
}

// visited counts a page, and returns the standing of its host, and whether it changed.
func (h *hosts) visited(hash uint64, useful, missing bool) (standing int, moved bool) {
	h.table.update(hash, func(v uint64) uint64 {
		t := tally(v).with(useful, missing, h.most)
		standing, moved = -t.sunk(), t.sunk() != tally(v).sunk()
		return uint64(t)
	})
	return standing, moved
}

// of returns what is known of a host; zero if that is nothing.
func (h *hosts) of(hash uint64) tally { return tally(h.table.value(hash)) }
