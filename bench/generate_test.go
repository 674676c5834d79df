package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
)

func TestURLsAreMadeByNumber(t *testing.T) {
	s := &synthetic{seed: 1, hosts: zipfHosts(100_000, 1.1)}
	seen, hosts, bytes := map[string]bool{}, map[string]bool{}, 0
	var text []byte
	for i := range 100_000 {
		u := string(s.appendURL(nil, i))
		require.False(t, seen[u], u)
		seen[u] = true
		hosts[strings.Split(u, "/")[2]] = true
		bytes += len(u)
		text = append(text, u...)
		require.NotEqual(t, u, string(s.appendFresh(nil, i)))
	}
	require.Equal(t, s.appendURL(nil, 77), s.appendURL(nil, 77))
	mean := float64(bytes) / float64(len(seen))
	t.Logf("mean %.1f bytes, %.1f in s2, %d hosts", mean, float64(len(s2.Encode(nil, text)))/float64(len(seen)), len(hosts))
	require.InDelta(t, 71, mean, 2)
}

// TestZipfIsGos compares with math/rand's sampler, host by host at the top and
// in the number of hosts drawn.
func TestZipfIsGos(t *testing.T) {
	const hosts, draws = 10_000, 1_000_000
	ours, exact := make([]int, hosts), make([]int, hosts)
	by, z := zipfHosts(hosts, 1.1), rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 10, hosts-1)
	for i := range draws {
		ours[by(i, scramble(uint64(i)))]++
		exact[z.Uint64()]++
	}
	for k := range 20 {
		require.InDelta(t, exact[k], ours[k], 6*math.Sqrt(float64(exact[k])), "host %d", k)
	}
	touched := func(c []int) (n int) {
		for _, x := range c {
			n += min(x, 1)
		}
		return n
	}
	require.InEpsilon(t, touched(exact), touched(ours), 0.01)
}

func TestEveryHostGetsAURL(t *testing.T) {
	for _, n := range []uint64{1, 7, 1000, 4096} {
		by, seen := everyHost(n, 5000, zipfHosts(n, 1.1)), map[uint64]bool{}
		for i := range 5000 {
			seen[by(i, scramble(uint64(i)))] = true
		}
		require.Len(t, seen, int(n))
	}
}

func TestTallyTellsSetsApart(t *testing.T) {
	var a, b tally
	for _, u := range []string{"http://a.example/", "http://b.example/1", "http://c.example/22"} {
		a.add(u)
	}
	for _, u := range []string{"http://c.example/22", "http://a.example/", "http://b.example/1"} {
		b.add(u)
	}
	require.Equal(t, a, b)
	b.add("http://d.example/")
	require.NotEqual(t, a, b)
	var d tally
	d.add("http://d.example/")
	b.minus(d)
	require.Equal(t, a, b)
}

func BenchmarkFill(b *testing.B) {
	s := &synthetic{seed: 1, hosts: zipfHosts(1_000_000, 1.1)}
	var p page
	for i := 0; b.Loop(); i += 1000 {
		p.fill(s, 1000, following(i))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/url")
}
