// This file tests counters: what they count, that they are bounded, and that they last.

package processing

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// answered is a page as a Handler sees it.
func answered(host string, status int, contentType string, bytes int64, took time.Duration) *crawler.Page {
	start := time.Unix(1, 0)
	h := http.Header{}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	return &crawler.Page{
		Lease:  frontier.Lease{Host: host},
		Result: &fetch.Result{Status: status, Header: h, Bytes: bytes, Started: start, Ended: start.Add(took)},
	}
}

func openStatistics(t testing.TB, dir string, o StatisticsOptions) *Statistics {
	s, err := OpenStatistics(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestStatisticsCount(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := openStatistics(t, "", StatisticsOptions{Now: func() time.Time { return now }})
	for _, p := range []*crawler.Page{
		answered("a.example", 200, "Text/HTML; charset=utf-8", 1000, 3*time.Millisecond),
		answered("a.example", 200, "text/html;charset", 1024, 0),
		answered("b.example", 404, "", 0, time.Second),
		answered("a.example", 200, "text", 1, 0),
		answered("a.example", 200, strings.Repeat("x", 200)+"/y", 1, 0),
	} {
		require.NoError(t, s.Handle(t.Context(), p))
	}
	assert.Equal(t, Report{
		Since: now, Total: Sum{5, 2026},
		Status: map[string]Sum{"200": {4, 2026}, "404": {1, 0}},
		Types:  map[string]Sum{"text/html": {2, 2024}, "none": {1, 0}, "malformed": {2, 2}},
		Sizes:  Histogram{1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1},
		Millis: Histogram{3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1},
		Hosts:  []HostSum{{Host: "a.example", Sum: Sum{4, 2026}}, {Host: "b.example", Sum: Sum{1, 0}}},
	}, s.Report())
	text := s.Report().String()
	for _, want := range []string{"all      since 2026-01-02T03:04:05Z", "status   404", `type     "text/html"`, "size     512 to 1023 B", "took     0 ms", "took     2 to 3 ms", "host     a.example"} {
		assert.Contains(t, text, want)
	}
}

// The counters are bounded for any number of types and hosts. Hosts with more than their share are
// found, never counted too low, and too high by no more than reported.
func TestStatisticsAreBounded(t *testing.T) {
	s := openStatistics(t, "", StatisticsOptions{Hosts: 50})
	r := rand.New(rand.NewPCG(1, 2))
	want := map[string]int64{}
	const n = 20_000
	for i := range n {
		host := fmt.Sprintf("rare%d.example", i)
		if x := r.IntN(10); x < 4 {
			host = fmt.Sprintf("often%d.example", x)
		}
		want[host]++
		require.NoError(t, s.Handle(t.Context(), answered(host, 100+i%900, fmt.Sprintf("type/%d", i), 1, 0)))
	}
	got := s.Report()
	assert.Len(t, got.Hosts, 50)
	assert.LessOrEqual(t, len(got.Types), maxTypes+1)
	assert.LessOrEqual(t, len(got.Status), 900)
	var total int64
	for _, x := range got.Types {
		total += x.Answers
	}
	assert.EqualValues(t, n, total)
	for i, h := range got.Hosts {
		if i < 4 {
			assert.Contains(t, h.Host, "often")
		}
		assert.GreaterOrEqual(t, h.Answers, want[h.Host])
		assert.LessOrEqual(t, h.Answers-h.Over, want[h.Host])
		assert.LessOrEqual(t, h.Over, int64(n/50))
	}
}

// A folder of another version is refused as such, and stays as it is.
func TestStatisticsOfAnotherVersion(t *testing.T) {
	for _, other := range []string{`{"log": 3, "total": {"answers": 7}}`, `{"version": 2, "log": "x"}`} {
		dir := t.TempDir()
		name := filepath.Join(dir, "stats.json")
		require.NoError(t, os.WriteFile(name, []byte(other), 0o600))
		_, err := OpenStatistics(dir, StatisticsOptions{})
		require.ErrorIs(t, err, frontier.ErrVersion)
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, other, string(b))
	}
}

// What Handle has returned for is counted after anything: here the folder is copied
// after each answer, as kill -9 would leave it, and its last line is torn.
func TestStatisticsLast(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1000, 0).UTC()
	o := StatisticsOptions{Now: func() time.Time { return now }}
	s := openStatistics(t, filepath.Join(dir, "s"), o)
	for i := range 40 {
		require.NoError(t, s.Handle(t.Context(), answered(fmt.Sprintf("h%d.example", i%3), 200+i%2, "text/html", int64(i), 0)))
		now = now.Add(7 * time.Second) // so that stats.json is written now and then
		left := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.CopyFS(left, os.DirFS(filepath.Join(dir, "s"))))
		logs, err := filepath.Glob(filepath.Join(left, "stats-*.log"))
		require.NoError(t, err)
		require.Len(t, logs, 1)
		f, err := os.OpenFile(logs[0], os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(`{"s":200,"t":"tex`)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, os.WriteFile(filepath.Join(left, "stats-999.log"), []byte(`{"s":500}`+"\n"), 0o600)) // its stats.json never was
		again := openStatistics(t, left, o)
		assert.Equal(t, s.Report(), again.Report())
	}
	to := filepath.Join(dir, "copy")
	require.NoError(t, s.CopyTo(t.Context(), to))
	want := s.Report()
	assert.Equal(t, want, openStatistics(t, to, o).Report())
	require.NoError(t, s.Close())
	require.Error(t, s.Handle(t.Context(), answered("a", 200, "", 0, 0)))
	b, err := os.ReadFile(filepath.Join(dir, "s", statisticsName))
	require.NoError(t, err)
	var stored Report
	require.NoError(t, json.Unmarshal(b, &stored))
	assert.Equal(t, want.Total, stored.Total)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "s", statisticsName), []byte("{"), 0o600))
	_, err = OpenStatistics(filepath.Join(dir, "s"), o)
	require.ErrorContains(t, err, statisticsName)
	_, err = OpenStatistics("", StatisticsOptions{Hosts: -1})
	require.ErrorContains(t, err, "Hosts is -1; want >= 1")
}

func TestForTypes(t *testing.T) {
	var mu sync.Mutex
	var got []string
	h := ForTypes(func(_ context.Context, p *crawler.Page) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, p.Header.Get("Content-Type"))
		return nil
	}, "text/html", "image/*", "none")
	for _, kind := range []string{"text/html; charset=x", "text/plain", "IMAGE/png", "", "image", "x/image"} {
		require.NoError(t, h(t.Context(), answered("a", 200, kind, 1, 0)))
	}
	assert.Equal(t, []string{"text/html; charset=x", "IMAGE/png", ""}, got)
}
