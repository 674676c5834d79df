package record

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func requireSameBody(t require.TestingT, want, got Body) {
	require.Equal(t, want.History, got.History)
	require.True(t, bytes.Equal(want.Meta, got.Meta) && bytes.Equal(want.URL, got.URL))
	require.Equal(t, [2]int{want.Depth, want.Fails}, [2]int{got.Depth, got.Fails})
	require.True(t, want.Weight == got.Weight || math.IsNaN(want.Weight) && math.IsNaN(got.Weight))
}

func TestBodyComesBackAsItWas(t *testing.T) {
	when := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-1<<45, 1<<45))
	weight := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{1, -0.75, 255, 1e-40, math.Inf(1), math.SmallestNonzeroFloat32}))
	rapid.Check(t, func(t *rapid.T) {
		b := Body{
			Depth: rapid.IntRange(0, 1<<30).Draw(t, "depth"), Weight: weight.Draw(t, "weight"), Fails: rapid.IntRange(0, 300).Draw(t, "fails"),
			Meta: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "meta"), URL: []byte(rapid.String().Draw(t, "url")),
		}
		if rapid.Bool().Draw(t, "visited") {
			b.History = History{
				Visits: rapid.IntRange(0, math.MaxInt32).Draw(t, "visits"), Changes: rapid.IntRange(0, 300).Draw(t, "changes"),
				FirstVisit: when.Draw(t, "first"), LastVisit: when.Draw(t, "last"), LastChange: when.Draw(t, "change"), LastModified: when.Draw(t, "modified"),
			}
		}
		if rapid.Bool().Draw(t, "tried") {
			b.History.Last = rapid.ByteRange(0, MaxLast).Draw(t, "last")
			copy(b.History.State[:], rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "state"))
		}
		prefix := rapid.SliceOf(rapid.Byte()).Draw(t, "prefix")
		p := b.Append(bytes.Clone(prefix))
		require.True(t, bytes.HasPrefix(p, prefix))
		require.LessOrEqual(t, len(p)-len(prefix), b.Most())
		got, err := Decode(p[len(prefix):])
		require.NoError(t, err)
		requireSameBody(t, b, got)

		var a Arena
		ref := a.Store(1<<48-1, p[len(prefix):])
		a.SetHome(ref, math.MaxUint32, 31)
		a.At(ref).SetNext(77)
		a.At(ref).SetPrint(254)
		r := a.At(ref)
		require.Equal(t, []any{uint64(1<<48 - 1), uint32(math.MaxUint32), 31, byte(254)}, []any{r.Seq(), r.Part(), r.Pos(), r.Print()})
		require.EqualValues(t, 77, r.Next())
		require.True(t, bytes.Equal(p[len(prefix):], r.Body()))
	})
}

// A weight with a mantissa of 8 bits takes 3 bytes, or 2 after a try; longer ones stay exact.
func TestWeightsAreShort(t *testing.T) {
	size := func(b Body) int { return len(b.Append(nil)) }
	for _, w := range []float64{1, 0.5, 255, -1.5, 1 << 100, 0.0078125} {
		require.Equal(t, size(Body{})+3, size(Body{Weight: w}), "%v", w)
		tried := History{Last: MaxLast}
		require.Equal(t, size(Body{History: tried})+2, size(Body{Weight: w, History: tried}), "%v", w)
	}
	for _, w := range []float64{257, 0.1, math.Pi} {
		require.Equal(t, size(Body{})+8, size(Body{Weight: w}), "%v", w)
	}
	before := append([]byte{hasWeight, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, "url"...)
	require.Equal(t, 1.5, Must(before).Weight)
	for _, bad := range [][]byte{{hasLast, hasShort, 1}, {hasLast, MaxLast + 1}, {hasLast, hasShort | 7, 1, 1}} {
		_, err := Decode(bad)
		require.Error(t, err)
	}
}

// The counts match the contents, and a location distinguishes its record from later ones in its
// place.
func TestRecordsAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Arena
		type known struct {
			at    Location
			size  int
			homed bool
		}
		var live, gone []known
		seq := uint64(0)
		pick := func(t *rapid.T) int { return rapid.IntRange(0, len(live)-1).Draw(t, "record") }
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) {
				body := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "body")
				seq++
				ref := a.Store(seq, body)
				require.Equal(t, body, a.At(ref).Body())
				require.Zero(t, a.At(ref).Next())
				live = append(live, known{at: a.Locate(ref), size: len(body)})
			},
			"home": func(t *rapid.T) {
				if len(live) > 0 {
					x := &live[pick(t)]
					a.SetHome(x.at.Ref, 7, 3)
					x.homed = true
				}
			},
			"discard": func(t *rapid.T) {
				if len(live) > 0 {
					i := pick(t)
					a.Discard(live[i].at.Ref)
					gone = append(gone, live[i])
					live = append(live[:i], live[i+1:]...)
				}
			},
			"": func(t *rapid.T) {
				used, homeless := int64(0), int64(0)
				for _, x := range live {
					require.True(t, a.Holds(x.at))
					used += Cost(x.size)
					if !x.homed {
						homeless += Cost(x.size)
					}
				}
				for _, x := range gone {
					require.False(t, a.Holds(x.at))
				}
				require.Equal(t, used, a.Used())
				require.Equal(t, homeless, a.Homeless())
			},
		})
	})
}

func TestPlainURLCostsOneByte(t *testing.T) {
	b := Body{URL: []byte("http://a.example/")}
	require.Len(t, b.Append(nil), 18)
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, 12)
	for name, p := range map[string][]byte{
		"empty": {}, "all flags": {0xff},
		"no depth": {hasDepth}, "endless depth": append([]byte{hasDepth}, long...), "huge depth": {hasDepth, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"half a weight": {hasWeight, 1, 2, 3}, "no fails": {hasFails}, "half a history": {hasHistory, 1, 1, 0, 0, 0},
		"no length of Meta": {hasMeta}, "Meta cut short": {hasMeta, 5, 'a', 'b'}, "no last result": {hasLast}, "not a result": {hasLast, MaxLast + 1}, "half a state": append([]byte{hasState}, long[:11]...), "huge Meta": {hasMeta, 0xff, 0xff, 0xff, 0xff, 0x07, 'a'},
	} {
		_, err := Decode(p)
		require.Error(t, err, name)
	}
}

func FuzzDecodeBody(f *testing.F) {
	b := Body{Depth: 300, Weight: 1.5, Fails: 2, Meta: []byte("meta"), URL: []byte("http://a.example/"), History: History{Visits: 3, LastVisit: 5, Last: 3, State: [12]byte{11: 1}}}
	f.Add(b.Append(nil))
	f.Add([]byte{hasHistory, 1, 1, 0, 0, 0, 0, 'x'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		b, err := Decode(p)
		if err != nil {
			return
		}
		again, err := Decode(b.Append(nil))
		require.NoError(t, err)
		requireSameBody(t, b, again)
	})
}

// A ring has what joined and did not leave, in this order, whichever leaves.
func TestRingKeepsTheRest(t *testing.T) {
	for leaves := range 4 {
		var a Arena
		var first arena.Ref
		var want, got []arena.Ref
		for i := range 4 {
			ref := a.StoreForRing(uint64(i+1), []byte("x"))
			a.Join(&first, ref)
			want = append(want, ref)
		}
		a.Leave(&first, want[leaves])
		want = slices.Delete(want, leaves, leaves+1)
		for ref := first; len(got) < 3; ref = a.At(ref).After() {
			got = append(got, ref)
		}
		require.Equal(t, want, got, "number %d left", leaves)
		for _, ref := range want {
			require.NotZero(t, first)
			a.Leave(&first, ref)
		}
		require.Zero(t, first)
	}
}
