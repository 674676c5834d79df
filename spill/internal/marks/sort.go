// This file sorts marks, in place. They are uniform: after two bytes little is
// left to compare. A checkpoint sorts half a million while commits wait.

package marks

import "github.com/seed-7440039f/frontier/storage"

const sortFew = 24 // marks that are sorted by insertion

func sortMarks(ms []storage.Mark) { sortMarksFrom(ms, 0) }

// sortMarksFrom sorts marks whose first at bytes are the same.
func sortMarksFrom(ms []storage.Mark, at int) {
	if len(ms) <= sortFew {
		insertionSort(ms)
		return
	}
	if at == markLen {
		return
	}
	var ends, next [256]int
	for i := range ms {
		ends[ms[i][at]]++
	}
	sum := 0
	for b := range ends {
		next[b] = sum
		sum += ends[b]
		ends[b] = sum
	}
	for b := range ends {
		for i := next[b]; i < ends[b]; i = next[b] {
			m := ms[i]
			for int(m[at]) != b { // put it where it belongs, and take what was there
				j := next[m[at]]
				next[m[at]]++
				ms[j], m = m, ms[j]
			}
			ms[i] = m
			next[b]++
		}
	}
	start := 0
	for _, end := range ends {
		sortMarksFrom(ms[start:end], at+1)
		start = end
	}
}

func insertionSort(ms []storage.Mark) {
	for i := 1; i < len(ms); i++ {
		m := ms[i]
		hi, lo := splitMark(m[:])
		j := i
		for ; j > 0; j-- {
			if h, l := splitMark(ms[j-1][:]); h < hi || h == hi && l <= lo {
				break
			}
			ms[j] = ms[j-1]
		}
		ms[j] = m
	}
}
