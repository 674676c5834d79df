package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var long = flag.Bool("frontier.long", false, "kill and freeze the nodes of a fleet, which takes minutes")

func TestMain(m *testing.M) {
	if order := os.Getenv(asFetcher); order != "" {
		fmt.Fprintln(os.Stderr, fetch(order))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// go test -run Faults -v ./fleet/faults -frontier.long
func TestFaults(t *testing.T) {
	if !supported {
		t.Skip("processes cannot be frozen on this system")
	}
	if !*long {
		t.Skip("it takes minutes: give -frontier.long")
	}
	var out bytes.Buffer
	o := options{keep: t.TempDir(), faults: 3, pages: 400, hosts: 40, fetchers: 3, workers: 8, slow: 0.04, seed: 1, finalWait: 3 * time.Minute, quietLimit: 75 * time.Second}
	o.binary = filepath.Join(o.keep, "frontier")
	require.NoError(t, build(t.Context(), o.binary))
	err := run(t.Context(), o, nil, &out)
	t.Log(out.String())
	require.NoError(t, err)
}

func TestWebJudges(t *testing.T) {
	for _, x := range []struct {
		name                     string
		ago                      time.Duration // since the contact before ended
		open                     bool          // it has not ended
		done                     bool          // the page's end was acknowledged
		early, overlaps, undones int
	}{
		{name: "after the delay", ago: delay + time.Second},
		{name: "before the delay is over", ago: delay / 2, early: 1},
		{name: "during another", ago: 2 * delay, open: true, overlaps: 1},
		{name: "again after its end", ago: 2 * delay, done: true, undones: 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWeb(1, 1, t.Logf)
			root := w.grow(2)[0]
			before, _, links := w.begin(0, visit{URL: root, Until: time.Now().Add(time.Minute)})
			require.Len(t, links, 1)
			if !x.open {
				w.end(before, true)
				before.end = time.Now().Add(-x.ago)
			}
			if x.done {
				w.ended(0)
			}
			w.begin(0, visit{URL: root, LeasedAt: time.Now(), Until: time.Now().Add(time.Minute)})
			require.Equal(t, []int{x.early, x.overlaps, x.undones}, []int{w.early, w.overlap, w.undone})
		})
	}
}

func TestEveryPageIsLinkedOnceOrAdded(t *testing.T) {
	w := newWeb(7, 10, t.Logf)
	found := map[string]int{}
	for range 2 {
		for _, root := range w.grow(200) {
			found[root]++
		}
	}
	for _, p := range w.pages {
		for _, l := range p.links {
			found[w.urlLocked(l)]++
		}
	}
	require.Len(t, found, 400)
	for u, n := range found {
		require.Equal(t, 1, n, u)
	}
}
