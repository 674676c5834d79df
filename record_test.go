package frontier

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func requireSameBody(t require.TestingT, want, got body) {
	for _, x := range [][2]time.Time{
		{want.history.FirstVisit, got.history.FirstVisit}, {want.history.LastVisit, got.history.LastVisit},
		{want.history.LastChange, got.history.LastChange}, {want.history.LastModified, got.history.LastModified},
	} {
		require.Equal(t, wallMillis(x[0]), wallMillis(x[1]))
	}
	require.Equal(t, want.history.Visits, got.history.Visits)
	require.Equal(t, want.history.Changes, got.history.Changes)
	require.Equal(t, want.history.Last, got.history.Last)
	require.Equal(t, want.history.State, got.history.State)
	require.True(t, bytes.Equal(want.meta, got.meta) && bytes.Equal(want.url, got.url))
	require.Equal(t, [2]int{want.depth, want.fails}, [2]int{got.depth, got.fails})
	require.True(t, want.weight == got.weight || math.IsNaN(want.weight) && math.IsNaN(got.weight))
}

func TestBodyComesBackAsItWas(t *testing.T) {
	when := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.UnixMilli(rapid.Int64Range(-1<<45, 1<<45).Draw(t, "ms"))
	})
	rapid.Check(t, func(t *rapid.T) {
		b := body{
			depth: rapid.IntRange(0, 1<<30).Draw(t, "depth"), weight: rapid.Float64().Draw(t, "weight"), fails: rapid.IntRange(0, 300).Draw(t, "fails"),
			meta: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "meta"), url: []byte(rapid.String().Draw(t, "url")),
		}
		if rapid.Bool().Draw(t, "visited") {
			b.history = History{
				Visits: rapid.IntRange(0, math.MaxInt32).Draw(t, "visits"), Changes: rapid.IntRange(0, 300).Draw(t, "changes"),
				FirstVisit: when.Draw(t, "first"), LastVisit: when.Draw(t, "last"), LastChange: when.Draw(t, "change"), LastModified: when.Draw(t, "modified"),
			}
		}
		if rapid.Bool().Draw(t, "tried") {
			b.history.Last = Result(rapid.IntRange(0, int(Denied)).Draw(t, "last"))
			copy(b.history.State[:], rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "state"))
		}
		prefix := rapid.SliceOf(rapid.Byte()).Draw(t, "prefix")
		p := b.append(bytes.Clone(prefix))
		require.True(t, bytes.HasPrefix(p, prefix))
		got, err := decodeBody(p[len(prefix):])
		require.NoError(t, err)
		requireSameBody(t, b, got)

		var c core
		ref := c.store(1<<48-1, p[len(prefix):])
		c.record(ref).setHome(math.MaxUint32, 31)
		c.record(ref).setNext(77)
		r := c.record(ref)
		require.Equal(t, []any{uint64(1<<48 - 1), uint32(math.MaxUint32), 31}, []any{r.seq(), r.part(), r.pos()})
		require.EqualValues(t, 77, r.next())
		require.True(t, bytes.Equal(p[len(prefix):], r.body()))
	})
}

func TestPlainURLCostsOneByte(t *testing.T) {
	b := body{url: []byte("http://a.example/")}
	require.Len(t, b.append(nil), 18)
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, 12)
	for name, p := range map[string][]byte{
		"empty": {}, "unknown flag": {knownFlags + 1, 'x'}, "all flags": {0xff},
		"no depth": {hasDepth}, "endless depth": append([]byte{hasDepth}, long...), "huge depth": {hasDepth, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"half a weight": {hasWeight, 1, 2, 3}, "no fails": {hasFails}, "half a history": {hasHistory, 1, 1, 0, 0, 0},
		"no length of Meta": {hasMeta}, "Meta cut short": {hasMeta, 5, 'a', 'b'}, "no last result": {hasLast}, "not a result": {hasLast, byte(Requeue)}, "half a state": append([]byte{hasState}, long[:11]...), "huge Meta": {hasMeta, 0xff, 0xff, 0xff, 0xff, 0x07, 'a'},
	} {
		_, err := decodeBody(p)
		require.Error(t, err, name)
	}
}

func FuzzDecodeBody(f *testing.F) {
	b := body{depth: 300, weight: 1.5, fails: 2, meta: []byte("meta"), url: []byte("http://a.example/"), history: History{Visits: 3, LastVisit: time.UnixMilli(5), Last: Gone, State: State{11: 1}}}
	f.Add(b.append(nil))
	f.Add([]byte{hasHistory, 1, 1, 0, 0, 0, 0, 'x'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		b, err := decodeBody(p)
		if err != nil {
			return
		}
		again, err := decodeBody(b.append(nil))
		require.NoError(t, err)
		requireSameBody(t, b, again)
	})
}
