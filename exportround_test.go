// This file tests that what Export writes and Import reads is the same, and all.

package frontier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
)

func (w *world) export() string {
	w.Helper()
	var b bytes.Buffer
	require.NoError(w, w.f.Export(context.Background(), &b, frontier.ExportOptions{TempDir: w.TempDir(), Memory: 64 << 10}))
	return b.String()
}

func (w *world) imported(text string) frontier.Imported {
	w.Helper()
	done, err := w.f.Import(context.Background(), strings.NewReader(text), frontier.ImportOptions{})
	require.NoError(w, err)
	return done
}

var exportTime = regexp.MustCompile(`"time":"[^"]*",`)

// timeless is an export without what tells when it was made.
func timeless(text string) string { return exportTime.ReplaceAllString(text, "") }

// lines returns the lines of an export of a kind.
func linesOf(text, kind string) (out []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `{"`+kind+`"`) {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// varied makes a frontier that has some of everything.
func (w *world) varied() {
	w.Helper()
	ctx := context.Background()
	var es []frontier.Entry
	for i := range 300 {
		host := []string{"a.example", "b.a.example", "example", "z.test", "10.0.0.1", "a-b.example"}[i%6]
		e := frontier.Entry{URL: fmt.Sprintf("http://%s/%d?q=\"\\<&ü", host, i), Depth: i % 5, Weight: float64(i%3) / 3, Crawl: uint32(i % 2)}
		switch {
		case i%7 == 0:
			e.NotBefore = w.clk.Now().Add(time.Duration(i+1) * time.Hour)
		case i%11 == 0:
			e.NotBefore = w.clk.Now().Add(time.Duration(i) * time.Second)
		}
		if i%5 == 0 {
			e.Meta = []byte{0, 1, 255, byte(i)}
		}
		es = append(es, e)
	}
	es = append(es, frontier.Entry{URL: "http://example/\xff\xfe"})
	n, err := w.f.Add(ctx, es...)
	require.NoError(w, err)
	require.Equal(w, len(es), n)
	require.NoError(w, w.f.SetRule(frontier.All(), frontier.Rule{Delay: frontier.FixedDelay(time.Second)}))
	require.NoError(w, w.f.SetRule(frontier.Domain("a.example"), frontier.Rule{Delay: frontier.FactorDelay(0.1, time.Millisecond, 7*time.Second)}))
	require.NoError(w, w.f.SetConcurrency(frontier.Domain("nobody.test"), 2))
	require.NoError(w, w.f.SetRule(frontier.Host("z\xff"), frontier.Rule{Paused: frontier.On, BlockedUntil: w.clk.Now().Add(1000 * time.Hour)}))
	for i := range 60 {
		l := w.next()
		if i%4 == 0 {
			if err := w.f.Join(&l, fmt.Sprint("group", i%3)); errors.Is(err, frontier.ErrGroupBusy) {
				require.NoError(w, w.f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
				continue
			}
		}
		o := frontier.Outcome{Result: frontier.Result(i % 6), CrawlDelay: time.Duration(i%5) * time.Second, Modified: dawn.Add(time.Duration(i) * time.Millisecond)}
		if i%9 == 0 {
			o.RetryAfter = 100 * 24 * time.Hour
		}
		if i%6 == 2 {
			o.Next = w.clk.Now().Add(time.Duration(i) * 24 * time.Hour)
		}
		w.fetched(l, 10*time.Millisecond, o)
	}
	w.next() // and one stays leased
}

// Export, import into an empty frontier, export again: the same bytes but for the
// time of the export. Importing it again changes nothing.
func TestExportImportExport(t *testing.T) {
	for _, from := range []string{"memory", "store", "moved", "reopened", "killed"} {
		for _, to := range []string{"memory", "store"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				o := frontier.Options{Retry: frontier.Retries(5, time.Hour)}
				w := newWorld(t, o)
				if from != "memory" {
					w = newStoredWorld(t, o, spill.Options{})
				}
				w.varied()
				switch from {
				case "moved":
					require.NoError(t, w.f.MoveNow(true))
					w.add("http://late.example/")
					l := w.next()
					require.NoError(t, w.f.Done(l, frontier.Outcome{}))
				case "reopened":
					w.reopen()
				case "killed":
					w = w.killed()
				}
				first := w.export()
				require.Equal(t, first, w.export(), "nothing has changed")
				x := newWorld(t, o)
				if to == "store" {
					x = newStoredWorld(t, o, spill.Options{})
				}
				x.clk.Set(w.clk.Now())
				done := x.imported(first)
				assert.Zero(t, done.Bad+done.KnownURLs+done.ForeignMarks)
				assert.EqualValues(t, strings.Count(first, "\n"), done.Lines)
				assert.EqualValues(t, len(linesOf(first, "url"))+len(linesOf(first, "url64")), done.URLs)
				require.NoError(t, x.f.Check())
				require.Equal(t, timeless(first), timeless(x.export()))
				again := x.imported(first)
				assert.Zero(t, again.URLs+again.Marks+again.ForeignMarks)
				require.Equal(t, timeless(first), timeless(x.export()), "importing is idempotent")
				if to == "store" {
					x.reopen()
					require.Equal(t, timeless(first), timeless(x.export()), "and durable")
				}
			})
		}
	}
}

var _ = slices.Equal[[]int]
var _ = io.EOF
var _ = rapid.Check
var _ = spilltest.Write
