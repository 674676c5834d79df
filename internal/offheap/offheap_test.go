package offheap

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type item struct {
	a uint64
	b uint32
	c [3]uint8
}

// An array has the values of a slice that is resized in the same way, on pages
// or not.
func TestArrayAgainstASlice(t *testing.T) {
	length := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 3*smallest/16), rapid.IntRange(0, 1<<16))
	rapid.Check(t, func(t *rapid.T) {
		a := Make[item](length.Draw(t, "n"))
		defer a.Free()
		want := make([]item, len(a.Items))
		x := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				x++
				i := rapid.IntRange(0, len(want)-1).Draw(t, "i")
				a.Items[i] = item{x, uint32(i), [3]uint8{1, 2, uint8(x)}}
				want[i] = a.Items[i]
			},
			"write all": func(t *rapid.T) {
				x++
				for i := range want {
					want[i] = item{a: x, b: uint32(i)}
					a.Items[i] = want[i]
				}
			},
			"resize": func(t *rapid.T) {
				n := length.Draw(t, "n")
				a.Resize(n)
				next := make([]item, n)
				copy(next, want)
				want = next
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(want), len(a.Items))
				require.EqualValues(t, len(want)*16, a.Size())
				for i := range want {
					if want[i] != a.Items[i] {
						require.Equal(t, want[i], a.Items[i], "item %d of %d", i, len(want))
					}
				}
			},
		})
	})
}

// Pieces do not overlap, stay where they are, and are zero when new or discarded.
func TestPiecesAreApart(t *testing.T) {
	type piece [1000]item // not a number of pages
	var p Pieces[piece]
	defer p.Free()
	var all []*piece
	fill := func(i int) {
		for j := range all[i] {
			all[i][j] = item{a: uint64(i + 1), b: uint32(j)}
		}
	}
	for i := range 300 {
		all = append(all, p.Next())
		require.Equal(t, piece{}, *all[i], "piece %d is new", i)
		fill(i)
	}
	for i := 0; i < len(all); i += 3 {
		Discard(all[i][:])
	}
	for i := range all {
		for j := range all[i] {
			want := item{a: uint64(i + 1), b: uint32(j)}
			if i%3 == 0 {
				want = item{}
			}
			if all[i][j] != want {
				require.Equal(t, want, all[i][j], "item %d of piece %d", j, i)
			}
		}
	}
	for i := range all {
		fill(i)
	}
	require.Equal(t, item{a: 1, b: 999}, all[0][999])
	require.Equal(t, item{a: 300}, all[299][0])
}

// Few mappings hold much: the system allows 65530 of them.
func TestRegionsGrow(t *testing.T) {
	if newMemory(1) == nil {
		t.Skip("all is in the Go heap")
	}
	var p Pieces[[1 << 20]byte]
	defer p.Free()
	for range 4096 {
		p.Next()
	}
	require.Less(t, len(p.regions), 100)
	require.Less(t, p.total>>20, 4096+maxRegion>>20)
}

func TestMemoryOfWhatIsCollectedIsFreed(t *testing.T) {
	was := collect(mapped.Load())
	func() {
		a := Make[uint32](1 << 20)
		a.Resize(3 << 20)
		b := Make[uint32](1 << 20)
		b.Items[0] = 1
		var p Pieces[[1 << 20]byte]
		p.Next()[7] = 7
		if newMemory(1) != nil {
			require.Greater(t, mapped.Load(), was+16<<20)
		}
		b.Free()
		require.Empty(t, b.Items)
		runtime.KeepAlive(&a)
		runtime.KeepAlive(&p)
	}()
	require.LessOrEqual(t, collect(was), was)
}

// collect returns what is mapped once that is not above n, or after a while.
func collect(n int64) int64 {
	for range 100 {
		runtime.GC()
		runtime.Gosched()
		if mapped.Load() <= n {
			break
		}
	}
	return mapped.Load()
}

func TestTypesWithPointersAreRefused(t *testing.T) {
	for name, fn := range map[string]func(){
		"pointer":  func() { Make[*int](1) },
		"string":   func() { Make[string](1) },
		"slice":    func() { Make[struct{ b []byte }](1) },
		"array":    func() { Make[[4]any](1) },
		"function": func() { Make[func()](1) },
		"piece":    func() { new(Pieces[[2]*int]).Next() },
	} {
		require.Panics(t, fn, name)
	}
	require.NotPanics(t, func() { Make[struct{ a [2]struct{ b bool } }](1) })
}
