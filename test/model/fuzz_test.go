// This file feeds what makes no sense to the calls that take what others wrote.

package model

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

func fuzzed(t *testing.T) (*frontier.Frontier, *simclock.Clock) {
	clk := simclock.New(harness.Dawn)
	f, err := frontier.Open(t.Context(), frontier.Options{Clock: clk})
	require.NoError(t, err)
	return f, clk
}

// FuzzImport imports any text: all of it, or nothing, or the good lines. What came
// of it can be exported, and imported again.
func FuzzImport(f *testing.F) {
	for _, text := range []string{
		"http://a.example/\n# x\n\nhttp://a.example/\n", "\xef\xbb\xbf{\"url\":\"http://a.example/\",\"priority\":3,\"crawl\":7}\r\n",
		`{"frontier":1,"key":"00112233445566778899aabbccddeeff"}` + "\n" + `{"mark":"AAECAwQFBgcICQoL"}` + "\n", "{", "{}", `{"url":1}`,
		`{"host":"a.example","due":"2026-01-01T00:00:00Z","crawlDelay":"1s"}`, `{"group":"g","due":"9999-01-01T00:00:00Z"}`,
		`{"url":"http://a.example/","notBefore":"2030-01-01T00:00:00Z","meta":"bWluZQ==","attempt":3}`,
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, skip bool) {
		x, _ := fuzzed(t)
		defer harness.Ended(t, x)
		done, err := transfer.Import(t.Context(), x, bytes.NewReader(text), transfer.ImportOptions{SkipBad: skip})
		s := x.Stats()
		require.LessOrEqual(t, done.URLs, done.Lines)
		if err != nil && !skip {
			require.Zero(t, s.Known, "%v", err)
		}
		require.Equal(t, done.URLs, s.Waiting+s.Scheduled)
		var out bytes.Buffer
		require.NoError(t, transfer.Export(t.Context(), x, &out, transfer.ExportOptions{}))
		y, _ := fuzzed(t)
		defer harness.Ended(t, y)
		again, err := transfer.Import(t.Context(), y, &out, transfer.ImportOptions{TempDir: t.TempDir()})
		require.NoError(t, err)
		require.Equal(t, done.URLs, again.URLs)
	})
}

// FuzzAdd adds any URL: it is refused, or comes as it was, at its time.
func FuzzAdd(f *testing.F) {
	for _, u := range []string{
		"http://a.example/", "https://u:p@A.example:443/x?y#z", "http://[::1]:80/", "http://a.example/%zz", "ftp://x/",
		"http://b\u00fccher.example/\u00e9", "http://1.2.3.4", "mailto:a@b", "http://a.example/\x00", "", "//x", "http://a..example./",
	} {
		f.Add(u, uint32(3), int64(0))
		f.Add(u, uint32(0), int64(1)<<40)
	}
	f.Fuzz(func(t *testing.T, u string, crawl uint32, in int64) {
		x, clk := fuzzed(t)
		defer harness.Ended(t, x)
		e := frontier.Entry{URL: u, Crawl: crawl, Meta: []byte(u)}
		if in > 0 {
			e.NotBefore = harness.Dawn.Add(time.Duration(in))
		}
		n, err := x.Add(t.Context(), e, e)
		if n == 0 {
			require.Error(t, err)
			require.Zero(t, x.Stats().Known)
			return
		}
		require.NoError(t, err)
		require.Equal(t, 1, n, "the second is known")
		if in > 0 {
			_, at, err := x.TryNext()
			require.ErrorIs(t, err, frontier.ErrNotDue)
			require.False(t, at.Before(e.NotBefore))
			clk.Set(at)
		}
		l, _, err := x.TryNext()
		require.NoError(t, err)
		require.Equal(t, u, l.Entry.URL)
		require.Equal(t, u, string(l.Entry.Meta))
		require.NotEmpty(t, l.Host)
		require.NoError(t, x.Done(l, frontier.Outcome{}))
		_, _, err = x.TryNext()
		require.ErrorIs(t, err, frontier.ErrExhausted)
	})
}
