// These tests write counts down, and read what was written and what was not.

package filter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func saved(t *testing.T, g *Traps) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, g.Save(&b))
	return b.Bytes()
}

// A trap that was left is not begun anew by guards that read what the last ones wrote.
func TestCountsAreKept(t *testing.T) {
	o := TrapOptions{MaxPerPattern: 100}
	item := func(i int) string { return fmt.Sprintf("http://a.example/item/%d", i) }
	g := NewTraps(o)
	n, _ := walk(g, 60, item)
	require.Equal(t, 60, n)
	g.Fetched(Split("http://b.example/", 0)) // counts for nothing yet
	file := saved(t, g)
	again := NewTraps(o)
	require.NoError(t, again.Load(bytes.NewReader(file)))
	assert.True(t, again.tally.check())
	assert.Equal(t, 1, again.tally.used.Len())
	n, refused := walk(again, 60, item)
	assert.Equal(t, 40, n)
	assert.Equal(t, map[string]int{"pattern": 20}, refused)

	require.NoError(t, again.Load(bytes.NewReader(file)), "what was counted since is forgotten")
	n, _ = walk(again, 60, item)
	assert.Equal(t, 40, n)
	empty := NewTraps(o)
	require.NoError(t, empty.Load(bytes.NewReader(saved(t, NewTraps(o)))))
	n, _ = walk(empty, 60, item)
	assert.Equal(t, 60, n)
}

// A file is bounded: the hosts that were met last are in it.
func TestSavedCountsAreBounded(t *testing.T) {
	var tl tally
	for h := range 60 {
		counts := map[uint64]int{}
		for k := range uint64(maxPerTable) {
			counts[k] = leastSaved + int(k%2) - 1 // every other one is too small
		}
		tl.insert(&table{fmt.Sprintf("h%d.example", h), counts})
	}
	all := tl.greatest(leastSaved, 5000)
	require.Len(t, all, 3)
	for i, want := range []int{2048, 2048, 904} {
		assert.Len(t, all[i].counts, want)
		assert.Equal(t, fmt.Sprintf("h%d.example", 59-i), all[i].host)
	}
	var to tally
	to.put(all)
	assert.True(t, to.check())
	assert.Equal(t, []string{"h59.example", "h58.example", "h57.example"}, to.names())
	to.put(append(all, all...))
	assert.True(t, to.check(), "a host that is there twice")
}

// Whatever is cut off a file or changed in it is noticed, and changes nothing.
func TestDamagedCounts(t *testing.T) {
	g := NewTraps(TrapOptions{})
	walk(g, 20, func(i int) string { return fmt.Sprintf("http://a.example/item/%d", i) })
	file := saved(t, g)
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x10
		require.ErrorIs(t, g.Load(bytes.NewReader(damaged)), ErrTrapFile, i)
		require.ErrorIs(t, g.Load(bytes.NewReader(file[:i])), ErrTrapFile, i)
	}
	for cut := range len(file) - 4 - len(trapFile) - 16 {
		_, err := readTables(file[len(trapFile)+16:][:cut])
		if cut > 0 {
			require.ErrorIs(t, err, ErrTrapFile)
		}
	}
	assert.Equal(t, []string{"a.example"}, g.tally.names())
	assert.Equal(t, file[:len(trapFile)+16], saved(t, g)[:len(trapFile)+16], "the same key")
}

// What another version counted is no damage.
func TestCountsOfAnotherVersion(t *testing.T) {
	g := NewTraps(TrapOptions{})
	walk(g, 20, func(i int) string { return fmt.Sprintf("http://a.example/item/%d", i) })
	file := saved(t, g)
	for _, version := range []byte{trapVersion - 1, trapVersion + 1} {
		for _, end := range []int{len(trapFile), len(file) - 4} {
			other := bytes.Clone(file[:end])
			other[len(trapFile)-1] = version
			other = binary.BigEndian.AppendUint32(other, crc32.Checksum(other, castagnoli))
			err := g.Load(bytes.NewReader(other))
			require.ErrorIs(t, err, ErrVersion)
			require.NotErrorIs(t, err, ErrTrapFile)
			require.ErrorContains(t, err, fmt.Sprintf("version %d, this program knows 1", version))
		}
	}
	assert.Equal(t, []string{"a.example"}, g.tally.names())
}
