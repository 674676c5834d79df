// This file exports and imports many URLs, and logs what that costs.

package load

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// peak watches what memory the process holds of its own.
type peak struct {
	stop atomic.Bool
	most atomic.Int64
}

func (p *peak) watch() *peak {
	go func() {
		for !p.stop.Load() {
			p.most.Store(max(p.most.Load(), harness.ResidentMemory()))
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return p
}

// Many URLs on badger: the bytes are the same after an import, and memory does not
// grow with them. With -frontier.long there are 10 million.
func TestExportOfMany(t *testing.T) {
	n, hosts := 50_000, uint64(4_000)
	if *harness.Long {
		n, hosts = 10_000_000, 670_000
	}
	ctx := context.Background()
	dir := t.TempDir()
	file := filepath.Join(dir, "export.jsonl")
	open := func(name string) *frontier.Frontier {
		s, err := spill.Open(filepath.Join(dir, name), spill.Options{})
		require.NoError(t, err)
		f, err := frontier.Open(ctx, frontier.Options{Spill: s, KeepOpen: true})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, f.Close())
			require.NoError(t, s.Close())
		})
		return f
	}
	tell := func(what string, since time.Time, cpu time.Duration, before int64, p *peak) {
		p.stop.Store(true)
		d := time.Since(since)
		t.Logf("%s: %v, %.0f k URLs/s, %.2f us CPU each; anonymous memory %d MiB at first, at most %d MiB", what, d.Round(time.Millisecond),
			float64(n)/d.Seconds()/1e3, float64((harness.CPUTime()-cpu).Microseconds())/float64(n), before>>20, p.most.Load()>>20)
	}
	f := open("first")
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 10, hosts)
	es := make([]frontier.Entry, 0, 1000)
	at, cpu, before, p := time.Now(), harness.CPUTime(), harness.ResidentMemory(), new(peak).watch()
	for i := range n {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://www.host%d.example/articles/%d", z.Uint64(), i), Depth: i % 8})
		if len(es) == cap(es) || i == n-1 {
			_, err := f.Add(ctx, es...)
			require.NoError(t, err)
			es = es[:0]
		}
	}
	tell("Add, 1,000 at a time", at, cpu, before, p)

	export := func(f *frontier.Frontier, w io.Writer) {
		require.NoError(t, transfer.Export(ctx, f, w, transfer.ExportOptions{TempDir: dir}))
	}
	out, err := os.Create(file)
	require.NoError(t, err)
	first := sha256.New()
	at, cpu, before, p = time.Now(), harness.CPUTime(), harness.ResidentMemory(), new(peak).watch()
	export(f, io.MultiWriter(out, &afterLine{w: first}))
	tell("Export", at, cpu, before, p)
	size, err := out.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	t.Logf("%d bytes, %.1f for each URL", size, float64(size)/float64(n))
	require.NoError(t, out.Close())

	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	g := open("second")
	at, cpu, before, p = time.Now(), harness.CPUTime(), harness.ResidentMemory(), new(peak).watch()
	done, err := transfer.Import(ctx, g, in, transfer.ImportOptions{})
	require.NoError(t, err)
	require.EqualValues(t, n, done.URLs)
	tell("Import, checked first", at, cpu, before, p)

	second := sha256.New()
	export(g, &afterLine{w: second})
	require.Equal(t, first.Sum(nil), second.Sum(nil), "the same bytes but for the first line")
	require.NoError(t, f.Check())
	require.NoError(t, g.Check())
}

// afterLine passes on what comes after the first line.
type afterLine struct {
	w     io.Writer
	begun bool
}

func (a *afterLine) Write(p []byte) (int, error) {
	n := len(p)
	for !a.begun && len(p) > 0 {
		a.begun = p[0] == '\n'
		p = p[1:]
	}
	_, err := a.w.Write(p)
	return n, err
}
