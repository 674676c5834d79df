package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var small = shape{pages: 3000, spam: 0.3, traps: 0.05, farm: [2]int{10, 30}, seed: 1}

// Every order crawls a web, on disk too, and over a restart.
func TestEveryOrderCrawls(t *testing.T) {
	for _, k := range []config{{seed: 1}, {seed: 1, disk: 128 << 20}, {seed: 1, disk: 128 << 20, again: again{restart: 0.05}}} {
		var out strings.Builder
		require.NoError(t, compare(&out, "", []subject{{"att", 20, 2, &small}}, orders, k))
		for _, o := range orders {
			assert.Contains(t, out.String(), "\n| "+o.name+" | ")
		}
		assert.Contains(t, out.String(), "\n| att: links over the default at 10 % | >= 2 | 4 | ")
		assert.NotContains(t, out.String(), "NaN")
	}
}

// The exact orders are better than hosts in turn, and so is the frontier that moves pages by exact scores.
func TestBetterOrders(t *testing.T) {
	g, m := shape{pages: 12000, spam: 0.3, traps: 0.05, farm: [2]int{10, 30}, seed: 1}.web(), measured{"g": {}}
	for _, o := range orders {
		k := config{seed: 1, rate: 20}
		r, err := k.run(g, g.seeds, &o)
		require.NoError(t, err)
		m["g"][o.name] = []result{r}
		t.Logf("%s %.3f %.2f", o.name, r.worth, r.spam)
	}
	for _, better := range []string{"in-links exact", "trust exact", "oracle", "in-links risen"} {
		assert.Less(t, m.behind(better, "round robin", "g", at10), -1., better)
	}
	assert.Equal(t, m.worth("g", "round robin", at50), m.worth("g", "in-links at admission", at50))
	assert.Less(t, m.spam("g", "oracle", at10), m.spam("g", "round robin", at10))
}

// With a snapshot of the estimator a restart in mid-crawl costs no order, although the frontier forgets its notes.
func TestRestart(t *testing.T) {
	g := shape{pages: 12000, spam: 0.3, traps: 0.05, farm: [2]int{10, 30}, seed: 1}.web()
	for _, o := range orders {
		if o.name != "links" && o.name != "trust" {
			continue
		}
		var worth [2]float64
		for i, restart := range []float64{0, 0.05} {
			k := config{seed: 1, rate: 20, disk: 128 << 20, again: again{restart: restart}}
			r, err := k.run(g, g.seeds, &o)
			require.NoError(t, err)
			worth[i] = 100 * r.worth[at30]
			t.Logf("%s %g %.3f", o.name, restart, r.worth)
		}
		assert.InDelta(t, worth[0], worth[1], 1, o.name)
	}
}

// A web is the same for the same seed, and nearly all of it can be reached.
func TestWebs(t *testing.T) {
	g := small.web()
	assert.Equal(t, small.web(), g)
	assert.Equal(t, small.pages, g.pages())
	assert.GreaterOrEqual(t, g.reach, small.pages*9/10)
	kinds := [3]int{}
	for _, k := range g.kind {
		kinds[k]++
	}
	assert.Equal(t, [3]int{1950, 900, 150}, kinds)
}

func TestPageRank(t *testing.T) {
	g := &graph{first: []int32{0, 1, 4, 4, 5}, links: []int32{1, 0, 2, 3, 0}, kind: []byte{good, good, good, spam}} // 0 <-> 1 -> 2
	g.rank()
	assert.InDelta(t, g.worth[0], g.worth[2], 1e-9)
	assert.InDelta(t, (0.15+0.85*g.worth[2])/3+0.85*g.worth[0], g.worth[1], 1e-6)
	assert.InDelta(t, 1, g.worth[0]+g.worth[1]+g.worth[2], 1e-9)
	assert.Zero(t, g.worth[3])
}

func TestReadGraph(t *testing.T) {
	g := small.web()
	var b bytes.Buffer
	head := []int64{int64(g.pages()), int64(g.hosts), int64(len(g.links)), int64(len(g.seeds)), int64(g.reach)}
	for _, part := range []any{head, g.first, g.links, g.host, g.kind, g.seeds, g.worth, g.worth} {
		require.NoError(t, binary.Write(&b, binary.LittleEndian, part))
	}
	file := filepath.Join(t.TempDir(), "web.bin")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	same, err := readGraph(file)
	require.NoError(t, err)
	assert.Equal(t, g, same)
	require.NoError(t, os.WriteFile(file, b.Bytes()[:b.Len()-1], 0o600))
	_, err = readGraph(file)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
