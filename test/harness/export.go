// This file exports and imports.

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/transfer"
)

// Export returns what Export writes.
func (w *World) Export() string {
	w.Helper()
	var b bytes.Buffer
	require.NoError(w, transfer.Export(context.Background(), w.F, &b, transfer.ExportOptions{TempDir: w.TempDir(), Memory: 64 << 10}))
	return b.String()
}

// Imported returns a new world into which the export was imported.
func (w *World) Imported(text string) transfer.Imported {
	w.Helper()
	done, err := transfer.Import(context.Background(), w.F, strings.NewReader(text), transfer.ImportOptions{})
	require.NoError(w, err)
	return done
}

var exportTime = regexp.MustCompile(`"(time|since)":"[^"]*",`)

// Timeless removes from an export when it was made, and when periods began: an import moves them if
// its rules have just changed.
func Timeless(text string) string { return exportTime.ReplaceAllString(text, "") }

// lines returns the lines of an export of a kind.
func LinesOf(text, kind string) (out []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `{"`+kind+`"`) {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// Varied fills a frontier with some data of every kind.
func (w *World) Varied() {
	w.Helper()
	ctx := context.Background()
	var es []frontier.Entry
	for i := range 300 {
		host := []string{"a.example", "b.a.example", "example", "z.test", "10.0.0.1", "a-b.example"}[i%6]
		e := frontier.Entry{URL: fmt.Sprintf("http://%s/%d?q=\"\\<&ü", host, i), Depth: i % 5, Weight: float64(i%3) / 3, Crawl: uint32(i%2) * 70000}
		switch {
		case i%7 == 0:
			e.NotBefore = w.Clock.Now().Add(time.Duration(i+1) * time.Hour)
		case i%11 == 0:
			e.NotBefore = w.Clock.Now().Add(time.Duration(i) * time.Second)
		}
		if i%5 == 0 {
			e.Meta = []byte{0, 1, 255, byte(i)}
		}
		es = append(es, e)
	}
	es = append(es, frontier.Entry{URL: "http://example/\xff\xfe"})
	n, err := w.F.Add(ctx, es...)
	require.NoError(w, err)
	require.Equal(w, len(es), n)
	require.NoError(w, w.F.UpdateRule(scope.All(), func(rule *frontier.Rule) { *rule = frontier.Rule{Delay: frontier.FixedDelay(time.Second)} }))
	require.NoError(w, w.F.UpdateRule(scope.Domain("a.example"), func(rule *frontier.Rule) {
		*rule = frontier.Rule{Delay: frontier.FactorDelay(0.1, time.Millisecond, 7*time.Second)}
	}))
	require.NoError(w, w.F.UpdateRule(scope.Domain("nobody.test"), func(r *frontier.Rule) { r.Concurrency = 2 }))
	require.NoError(w, w.F.UpdateRule(scope.Host("z\xff"), func(rule *frontier.Rule) {
		*rule = frontier.Rule{Paused: scope.On, BlockedUntil: w.Clock.Now().Add(1000 * time.Hour)}
	}))
	require.NoError(w, w.F.UpdateRule(scope.Crawl(70000), func(r *frontier.Rule) { *r = frontier.Rule{Weight: 3} }))
	require.NoError(w, w.F.UpdateRule(scope.Crawl(8), func(r *frontier.Rule) { *r = frontier.Rule{Paused: scope.On} }))
	for i := range 60 {
		l := w.Next()
		if i%4 == 0 {
			if err := w.F.Join(&l, fmt.Sprint("group", i%3)); errors.Is(err, frontier.ErrGroupBusy) {
				require.NoError(w, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
				continue
			}
		}
		o := frontier.Outcome{Result: frontier.Result(i % 6), CrawlDelay: time.Duration(i%5) * time.Second, Modified: Dawn.Add(time.Duration(i) * time.Millisecond)}
		if o.Result == frontier.Failed {
			o.Failure = frontier.FailureUnavailable
		}
		if i%9 == 0 {
			o.RetryAfter = 100 * 24 * time.Hour
		}
		if i%6 == 2 {
			o.Next = w.Clock.Now().Add(time.Duration(i) * 24 * time.Hour)
		}
		w.Fetched(l, 10*time.Millisecond, o)
	}
	w.Next() // and one stays leased
}

// Closing is closed when Close has begun.
func (w *World) Closing() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, _, err := w.F.TryNext(); errors.Is(err, frontier.ErrClosed) {
				return
			} else if err != nil {
				runtime.Gosched()
			}
		}
	}()
	return done
}
