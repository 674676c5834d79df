// This file tests what an index says of hosts.

package neardup

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMirrors(t *testing.T) {
	var told []Mirror
	dir := t.TempDir()
	x := open(t, dir, Options{OnMirror: func(m Mirror) { told = append(told, m) }})
	for i := range 40 {
		hosts := []string{"a.example", "mirror.a.example"}
		if i%3 == 0 { // both are crawled at once
			hosts[0], hosts[1] = hosts[1], hosts[0]
		}
		for _, h := range hosts {
			add(t, x, fmt.Sprintf("http://%s/page?%d", h, i), prose(60, i))
		}
		add(t, x, fmt.Sprintf("http://c.example/other/%d", i), prose(60, i)) // copies, but no mirror
		add(t, x, fmt.Sprintf("http://d.example/page?%d", i), prose(60, i+1000*(i%2)))
	}
	want := []Mirror{{Host: "mirror.a.example", Of: "a.example", Same: 40, Pages: 40}}
	got, err := x.Mirrors()
	require.NoError(t, err)
	assert.Equal(t, want, got)
	require.Len(t, told, 1, "40 pages are two doublings of 10")
	assert.Equal(t, Mirror{Host: "mirror.a.example", Of: "a.example", Same: 10, Pages: 10}, told[0])
	require.NoError(t, x.Close())
	x = open(t, dir, Options{})
	got, err = x.Mirrors()
	require.NoError(t, err)
	assert.Equal(t, want, got)

	for i := range 20 { // the mirror becomes a site of its own
		add(t, x, fmt.Sprintf("http://mirror.a.example/page?%d", i), prose(60, i+5000))
	}
	got, err = x.Mirrors()
	require.NoError(t, err)
	assert.Empty(t, got)
}

// Which of two hosts is the mirror does not depend on which had its pages first.
func TestMirrorsStayWhatTheyAre(t *testing.T) {
	var told []Mirror
	x := open(t, "", Options{OnMirror: func(m Mirror) { told = append(told, m) }})
	pairs := [][2]string{{"mirror.a.example", "a.example"}, {"d.example", "c.example"}}
	add2 := func(i int, first, second string) {
		for _, h := range []string{first, second} {
			add(t, x, fmt.Sprintf("http://%s/page?%d", h, i), prose(60, i))
		}
	}
	for k, p := range pairs {
		for i := range 10 {
			add2(100*k+i, p[0], p[1]) // the mirror is first, until it is reported
		}
	}
	require.Len(t, told, 2)
	for k, p := range pairs {
		assert.Equal(t, Mirror{Host: p[0], Of: p[1], Same: 10, Pages: 10}, told[k])
		for i := 10; i < 30; i++ {
			add2(100*k+i, p[1], p[0])
		}
	}
	got, err := x.Mirrors()
	require.NoError(t, err)
	assert.Equal(t, []Mirror{
		{Host: "d.example", Of: "c.example", Same: 30, Pages: 30},
		{Host: "mirror.a.example", Of: "a.example", Same: 30, Pages: 30},
	}, got)
	assert.Len(t, told, 2, "once each")
}

// Pages of one host that are near each other: whichever is found first, that at the same
// path counts. Both hosts are crawled at once, each in an order of its own.
func TestMirrorsOfNearPages(t *testing.T) {
	const n = 50
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := open(t, "", Options{})
		orders := [2][]int{r.Perm(n), r.Perm(n)}
		var next [2]int
		for next[0] < n || next[1] < n {
			h := r.IntN(2)
			if next[h] == n {
				continue
			}
			i := orders[h][next[h]]
			next[h]++
			m := add(t, x, fmt.Sprintf("http://%s/%d", []string{"a.example", "b.example"}[h], i), prose(400, 0)+prose(3, i+1))
			if next[0]+next[1] > 1 {
				require.True(t, m.Kind.Duplicate())
			}
		}
		got, err := x.Mirrors()
		require.NoError(t, err)
		require.Len(t, got, 1, "seed %d", seed)
		assert.Equal(t, "b.example", got[0].Host)
		assert.GreaterOrEqual(t, got[0].Same, n*8/10)
		assert.Equal(t, n, got[0].Pages)
	}
}

// Hosts with few pages are compared in the end, as a whole.
func TestMirrorsOfFewPages(t *testing.T) {
	for name, c := range map[string]struct {
		same, alone, texts int // pages that both have; that b alone has; texts among the former
		want               []Mirror
	}{
		"all of seven":               {7, 0, 7, []Mirror{{Host: "b.example", Of: "a.example", Same: 7, Pages: 7}}},
		"three":                      {3, 0, 3, []Mirror{{Host: "b.example", Of: "a.example", Same: 3, Pages: 3}}},
		"two":                        {2, 0, 2, nil},
		"most of what the other has": {8, 1, 8, []Mirror{{Host: "b.example", Of: "a.example", Same: 8, Pages: 8}}},
		"some of what the other has": {7, 2, 7, nil},
		"few of many":                {7, 30, 7, nil},
		"two texts":                  {9, 0, 2, nil},
		"two texts all over":         {30, 0, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t, "", Options{OnMirror: func(m Mirror) { assert.Fail(t, "told", m) }})
			for i := range c.same {
				add(t, x, fmt.Sprintf("http://a.example/%d", i), prose(60, i%c.texts))
				add(t, x, fmt.Sprintf("http://b.example/%d", i), prose(60, i%c.texts))
			}
			for i := range c.alone {
				add(t, x, fmt.Sprintf("http://b.example/alone/%d", i), prose(60, 1000+i))
			}
			got, err := x.Mirrors()
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestOnHost(t *testing.T) {
	for raw, want := range map[string]string{
		"http://a.example/x?y=http://a.example/": "http://b.example/x?y=http://a.example/",
		"http://a.example":                       "http://b.example",
		"http://a.example?x":                     "http://b.example?x",
		"https://me:pw@a.example:8080/x@y:1":     "https://me:pw@b.example:8080/x@y:1",
		"http://[::1]/x":                         "http://b.example/x",
		"http://[::1]:81/x":                      "http://b.example:81/x",
		"http://me:pw@[::1]/":                    "http://me:pw@b.example/",
	} {
		got, ok := onHost(raw, "b.example")
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
	got, _ := onHost("http://a.example:81/x", "::1")
	assert.Equal(t, "http://[::1]:81/x", got)
	_, ok := onHost("urn:x", "b.example")
	assert.False(t, ok)
}
