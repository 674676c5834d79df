// This file reads the table when the first name needs it.

package idna

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"sync"
)

//go:embed table.gz
var packed []byte

// table holds the data about code points.
type table struct {
	refused [][2]rune        // ranges, in order
	mapped  map[rune][]rune  // code points that are not mapped to themselves, decomposed
	classes map[rune]uint8   // of combining marks
	pairs   map[[2]rune]rune // composites
}

var load = sync.OnceValue(func() *table {
	t, err := read(packed)
	if err != nil {
		panic(fmt.Sprintf("idna: embedded table: %v", err)) // a broken build
	}
	return t
})

func read(packed []byte) (*table, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	t := &table{mapped: map[rune][]rune{}, classes: map[rune]uint8{}, pairs: map[[2]rune]rune{}}
	for line := range strings.Lines(string(text)) {
		var nums []rune
		for _, f := range strings.Fields(line[1:]) {
			n, err := strconv.ParseUint(f, 16, 21)
			if err != nil {
				return nil, err
			}
			nums = append(nums, rune(n))
		}
		switch {
		case line[0] == '!' && len(nums) == 2:
			t.refused = append(t.refused, [2]rune(nums))
		case line[0] == '=' && len(nums) > 0:
			t.mapped[nums[0]] = nums[1:]
		case line[0] == 'c' && len(nums) > 0:
			for _, r := range nums[1:] {
				t.classes[r] = uint8(nums[0])
			}
		case line[0] == '+' && len(nums) == 3:
			t.pairs[[2]rune{nums[1], nums[2]}] = nums[0]
		default:
			return nil, fmt.Errorf("line %q", line)
		}
	}
	return t, nil
}

// refuses reports whether a code point is forbidden in names.
func (t *table) refuses(r rune) bool {
	i := sort.Search(len(t.refused), func(i int) bool { return t.refused[i][1] >= r })
	return i < len(t.refused) && t.refused[i][0] <= r
}
