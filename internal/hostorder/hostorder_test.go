package hostorder

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Hosts come and go before, while and after the order is built: it contains the existing hosts, and
// finds those of a domain after a key.
func TestOrderAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{""}
		present := func(id uint32) bool { return names[id] != "" }
		o := Order{Set: Set{Name: func(id uint32) []byte { return []byte(names[id]) }}}
		top := func() uint32 { return uint32(len(names) - 1) }
		label := rapid.SampledFrom([]string{"a", "b", "a-b", "org", "127"})
		t.Repeat(map[string]func(*rapid.T){
			"comes": func(t *rapid.T) {
				name := strings.Join(rapid.SliceOfN(label, 1, 3).Draw(t, "labels"), ".")
				if slices.Contains(names, name) {
					t.Skip("there is one")
				}
				id := slices.Index(names[1:], "") + 1
				if id == 0 {
					id, names = len(names), append(names, "")
				}
				names[id] = name
				o.Came(uint32(id))
			},
			"leaves": func(t *rapid.T) {
				id := rapid.IntRange(0, len(names)-1).Draw(t, "id")
				if names[id] == "" {
					t.Skip("none")
				}
				o.Leaves(uint32(id))
				names[id] = ""
			},
			"grow": func(t *rapid.T) { o.Grow(rapid.IntRange(1, 5).Draw(t, "n"), top(), present) },
			"": func(t *rapid.T) {
				o.Check(t.Errorf, top(), present)
				if o.upTo != math.MaxUint32 {
					return
				}
				key := hostkey.Reversed(strings.Join(rapid.SliceOfN(label, 0, 3).Draw(t, "behind"), "."))
				prefix := rapid.SampledFrom([]string{"", "org.", "org.a.", "a."}).Draw(t, "prefix")
				var want []string
				for _, name := range names[1:] {
					if r := hostkey.Reversed(name); name != "" && r > key && strings.HasPrefix(r, prefix) {
						want = append(want, r)
					}
				}
				slices.Sort(want)
				n := rapid.IntRange(0, 5).Draw(t, "most")
				var got []string
				for _, id := range o.After(nil, key, prefix, n) {
					got = append(got, string(o.Key(nil, id)))
				}
				require.Equal(t, append([]string(nil), want[:min(n, len(want))]...), got)
			},
		})
	})
}

// Classes are ordered like sizes, and none is wider than a 64th.
func TestSizeClasses(t *testing.T) {
	for n := int32(0); n <= 64; n++ {
		require.Equal(t, uint32(n), sizeClass(n))
	}
	require.Less(t, sizeClass(math.MaxInt32), uint32(sizeClasses))
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int32Range(0, math.MaxInt32).Draw(t, "a")
		b := rapid.Int32Range(0, a).Draw(t, "b")
		require.GreaterOrEqual(t, sizeClass(a), sizeClass(b))
		if a-b > a/64+1 {
			require.Greater(t, sizeClass(a), sizeClass(b))
		}
	})
}

// The largest are those that a look at all hosts finds.
func TestSizesAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waiting := make([]int32, 1, 50)
		of := func(id uint32) int32 { return waiting[id] }
		var s Sizes
		top := func() uint32 { return uint32(len(waiting) - 1) }
		t.Repeat(map[string]func(*rapid.T){
			"new": func(t *rapid.T) {
				waiting = append(waiting, 0)
			},
			"change": func(t *rapid.T) {
				if top() == 0 {
					t.Skip("none")
				}
				id := rapid.Uint32Range(1, top()).Draw(t, "id")
				waiting[id] = rapid.OneOf(rapid.Int32Range(0, 3), rapid.Int32Range(0, 300)).Draw(t, "n")
				if s.Asked() {
					s.Changed(id, waiting[id])
				}
			},
			"grow": func(t *rapid.T) { s.Grow(rapid.IntRange(1, 5).Draw(t, "n"), top(), of) },
			"": func(t *rapid.T) {
				s.Check(t.Errorf, top(), of)
				if s.upTo != math.MaxUint32 {
					return
				}
				n := rapid.IntRange(0, 10).Draw(t, "largest")
				var want []int32
				for _, x := range waiting {
					if x > 0 {
						want = append(want, x)
					}
				}
				slices.SortFunc(want, func(a, b int32) int { return cmp.Compare(b, a) })
				want = want[:min(n, len(want))]
				var got []int32
				for _, x := range s.Largest(n, 1000, of) {
					require.Equal(t, waiting[x.ID], x.Waiting)
					got = append(got, x.Waiting)
				}
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
			},
		})
	})
}
