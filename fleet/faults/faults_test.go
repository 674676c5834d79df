package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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
	o := options{keep: t.TempDir(), faults: 3, most: time.Hour, pages: 400, hosts: 40, partitions: 4, shared: 2, engine: "etcd", fetchers: 3, workers: 8, slow: 0.04, seed: 1, finalWait: 3 * time.Minute, quietLimit: 75 * time.Second}
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
			w := newWeb(1, 1, 1, t.Logf)
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

func TestACrawlerOfOthersIsJudged(t *testing.T) {
	w := newWeb(1, 1, 1, t.Logf)
	root := w.grow(2)[0]
	get := func(url string) string {
		a := httptest.NewRecorder()
		w.ServeHTTP(a, httptest.NewRequest(http.MethodGet, url, nil))
		return a.Body.String()
	}
	require.Contains(t, get(root), `href="http://h0.example/p1"`)
	require.Zero(t, w.early)
	get("http://h0.example/robots.txt")
	require.Equal(t, 1, w.early)
	get("http://h0.example/p2")
	require.Equal(t, 1, w.early, "it is no page")
	pages, _ := w.left()
	require.Equal(t, 1, pages)
}

func TestEveryPageIsLinkedOnceOrAdded(t *testing.T) {
	w := newWeb(7, 10, 1, t.Logf)
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

// The date of a command that was built so is wrong, and its spans are right.
func TestAClockIsWrong(t *testing.T) {
	if !supported {
		t.Skip("files are not mapped in the same way on this system")
	}
	dir := t.TempDir()
	command, clock := filepath.Join(dir, "dates"), filepath.Join(dir, "clocks")
	require.NoError(t, overlay(command))
	require.NoError(t, os.WriteFile(command+".go", []byte(`package main

import (
	"os"
	"time"
)

func main() {
	wrong := time.Now()
	f, err := os.OpenFile(os.Args[1], os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(make([]byte, 8), 8)
	}
	right := time.Now()
	println(err == nil, wrong.Round(0).Sub(right.Round(0)).Round(time.Minute).String(), right.Sub(wrong).Round(time.Minute).String())
}
`), 0o666))
	b, err := exec.Command("go", "build", "-overlay", command+overlayOf, "-o", command, command+".go").CombinedOutput()
	require.NoError(t, err, string(b))
	require.NoError(t, os.WriteFile(clock, clocksOf(0, time.Hour, 0), 0o666))
	cmd := exec.Command(command, clock)
	cmd.Env = append(os.Environ(), clockFile+"=1"+clock)
	b, err = cmd.CombinedOutput()
	require.NoError(t, err, string(b))
	require.Equal(t, "true 1h0m0s 0s\n", string(b))
}

func clocksOf(all ...time.Duration) (b []byte) {
	for _, d := range all {
		b = binary.NativeEndian.AppendUint64(b, uint64(d))
	}
	return b
}

func TestKindsThatTheSystemAllows(t *testing.T) {
	for _, x := range []struct {
		allowed need
		only    string
		refused bool
	}{
		{}, {only: "kill owner,freeze other"}, {only: "cut pair", refused: true}, {only: "fill owner", allowed: ofLinks | ofClocks, refused: true},
		{only: "fill owner,clock off", allowed: ofDisks | ofClocks}, {only: "no such fault", allowed: ofLinks | ofDisks | ofClocks, refused: true},
	} {
		draw, err := (&options{only: x.only}).kinds(x.allowed)
		require.Equal(t, x.refused, err != nil, "%+v: %v", x, err)
		for _, k := range draw {
			require.Zero(t, k.needs&^x.allowed, k.name)
		}
		require.Equal(t, x.refused, len(draw) == 0)
	}
}
