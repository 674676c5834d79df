// This file tests what is read of a log that was appended to, rotated, cut and full.

package crawllog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string, max int64) *Log {
	t.Helper()
	l, err := Open(Options{Path: path, MaxBytes: max})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

func add(t *testing.T, l *Log, records ...Record) {
	t.Helper()
	for _, r := range records {
		require.NoError(t, l.Add(r))
	}
}

// urls are the URLs of records that have one.
func urls(t *testing.T, all func(func(Record, error) bool)) (out []string) {
	t.Helper()
	for r, err := range all {
		require.NoError(t, err)
		if r.URL != "" {
			out = append(out, r.URL)
		}
	}
	return out
}

func page(i int) string { return fmt.Sprintf("http://a.example/%d", i) }

func TestARecordIsFoundAgain(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "deep", "ends.jsonl"), 0)
	want := Record{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), URL: "http://a.example/?q=<\"ä\u2028&>\\", Host: "a.example", Outcome: Fetched,
		Status: 200, Bytes: 17, Seconds: 0.25, Via: "http://a.example/", Digest: "sha1:X", Type: "text/html", Priority: 2, Depth: 1, Visit: 3, Attempt: 1,
	}
	old := want
	old.Status = 500
	add(t, l, old, want, Record{URL: want.URL + "/", Outcome: Gone}, Record{Outcome: Gone, URL: page(1), Reason: want.URL})
	got, ok, err := l.Find(want.URL)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, want, got)
	assert.Equal(t, 250*time.Millisecond, got.Took())
	_, ok, err = l.Find("http://a.example/unknown")
	require.NoError(t, err)
	assert.False(t, ok)
	recent, err := l.Recent(2)
	require.NoError(t, err)
	require.Len(t, recent, 2)
	assert.Equal(t, page(1), recent[0].URL)
	oldest, ok, err := l.Oldest()
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, Opened, oldest.Outcome)
}

func TestTheRecordsOfAHost(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ends.jsonl"), 0)
	add(t, l, Record{URL: page(1), Host: "a.example", Outcome: Fetched}, Record{URL: "http://a.example:81/robots.txt", Host: "a.example", Outcome: Robots},
		Record{URL: page(2), Host: "aa.example", Outcome: Fetched}, Record{URL: page(3), Host: "b.example", Outcome: Fetched, Reason: `"host":"a.example","outcome":"fetched"`},
		Record{URL: page(4), Host: "a.example", Outcome: Gone}, Record{URL: "http://[::1]:81/", Host: "::1", Outcome: Fetched})
	assert.Equal(t, []string{page(4), "http://a.example:81/robots.txt", page(1)}, urls(t, l.OfHost("a.example", "")))
	assert.Equal(t, []string{"http://a.example:81/robots.txt"}, urls(t, l.OfHost("a.example", Robots)))
	assert.Equal(t, []string{page(1)}, urls(t, l.OfHost("a.example", Fetched)))
	assert.Equal(t, []string{"http://[::1]:81/"}, urls(t, l.OfHost("::1", "")))
	assert.Empty(t, urls(t, l.OfHost("example", "")))
	for _, err := range l.OfHost("", "") {
		assert.ErrorContains(t, err, "no host given")
	}
}

// The files stay within the bound, what is left has no gap and is in order, and a log that is
// opened again continues with them.
func TestTheOldestFilesGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ends.jsonl")
	n := 0
	for range 2 {
		l, err := Open(Options{Path: path, MaxBytes: 64 << 10})
		require.NoError(t, err)
		for range 2000 {
			add(t, l, Record{URL: page(n), Outcome: Fetched})
			n++
		}
		require.NoError(t, l.Close())
		names, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		total := int64(0)
		for _, name := range names {
			info, err := os.Stat(name)
			require.NoError(t, err)
			total += info.Size()
		}
		assert.LessOrEqual(t, total, int64(64<<10))
		assert.Greater(t, total, int64(40<<10))
		kept := urls(t, l.All())
		require.Greater(t, len(kept), 300)
		for i, u := range kept {
			require.Equal(t, page(n-len(kept)+i), u)
		}
		back := urls(t, l.Backward())
		require.Len(t, back, len(kept))
		assert.Equal(t, page(n-1), back[0])
		_, ok, err := l.Find(kept[0])
		require.NoError(t, err)
		assert.True(t, ok)
		_, ok, err = l.Find(page(0))
		require.NoError(t, err)
		assert.False(t, ok)
	}
}

// A process that is killed leaves a cut line, and no Closed record: both are reported, and repeated
// records are marked.
func TestAKilledRunIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ends.jsonl")
	l := open(t, path, 0)
	add(t, l, Record{URL: page(1), Outcome: Fetched, Visit: 1, Attempt: 1}, Record{URL: page(2), Outcome: Failed, Visit: 1, Attempt: 1})
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "ends.jsonl")
	require.NoError(t, os.WriteFile(cut, append(left, `{"time":"2026-01-0`...), 0o600))
	assert.Len(t, urls(t, NewView(cut).Backward()), 2, "a line that is being written is none yet")

	again := open(t, cut, 0)
	add(t, again,
		Record{URL: page(1), Outcome: Fetched, Visit: 1, Attempt: 1}, Record{URL: page(1), Outcome: Fetched, Visit: 1, Attempt: 1},
		Record{URL: page(2), Outcome: Failed, Visit: 1, Attempt: 2}, Record{URL: page(3), Outcome: Fetched, Visit: 1, Attempt: 1})
	all, err := again.View.Recent(10)
	require.NoError(t, err)
	require.Len(t, all, 8)
	assert.Equal(t, []bool{false, false, false, true}, []bool{all[0].Again, all[1].Again, all[2].Again, all[3].Again})
	assert.Equal(t, Opened, all[4].Outcome)
	assert.EqualValues(t, 1, all[4].Count)
	assert.NotEmpty(t, all[4].Reason)
	memory, err := again.Recent(10)
	require.NoError(t, err)
	assert.Equal(t, all, memory)

	require.NoError(t, again.Close())
	orderly := open(t, cut, 0)
	first, err := orderly.Recent(1)
	require.NoError(t, err)
	assert.Equal(t, Opened, first[0].Outcome)
	assert.Empty(t, first[0].Reason)
	assert.Zero(t, first[0].Count)
}

// Records that could not be written are counted, and reported in the log once it can be written again.
func TestMissingRecordsAreTold(t *testing.T) {
	dir := t.TempDir()
	l := open(t, filepath.Join(dir, "ends.jsonl"), 0)
	l.mu.Lock()
	broken, err := os.Open(l.path) // it takes no writes
	require.NoError(t, err)
	good := l.file
	l.file = broken
	l.mu.Unlock()
	require.Error(t, l.Add(Record{URL: page(1), Outcome: Fetched}))
	require.Error(t, l.Add(Record{URL: page(2), Outcome: Fetched}))
	l.mu.Lock()
	l.file = good
	l.mu.Unlock()
	require.NoError(t, broken.Close())
	add(t, l, Record{URL: page(3), Outcome: Fetched})
	all, err := l.View.Recent(2)
	require.NoError(t, err)
	assert.Equal(t, page(3), all[0].URL)
	assert.Equal(t, Missing, all[1].Outcome)
	assert.EqualValues(t, 2, all[1].Count)
}

// A damaged line is an error of its own, and takes no other with it.
func TestADamagedLineIsPassedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ends.jsonl")
	good := `{"time":"2026-01-02T03:04:05Z","url":"http://a.example/1","outcome":"gone"}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(good+"\x00\x00\n{}\n"+good), 0o600))
	bad := 0
	for _, err := range NewView(path).All() {
		if err != nil {
			require.ErrorIs(t, err, ErrLine)
			bad++
		}
	}
	assert.Equal(t, 2, bad)
	all, err := NewView(path).Recent(10)
	require.NoError(t, err)
	assert.Len(t, all, 2)
	open(t, path, 0)
}

// Lines may be longer than what is read at once.
func TestLongLines(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ends.jsonl"), 0)
	long := "http://a.example/" + strings.Repeat("x", 3*chunk)
	add(t, l, Record{URL: page(1), Outcome: Gone}, Record{URL: long, Outcome: Gone}, Record{URL: page(2), Outcome: Gone})
	assert.Equal(t, []string{page(2), long, page(1)}, urls(t, l.Backward()))
	assert.Equal(t, []string{page(1), long, page(2)}, urls(t, l.All()))
}

func TestALogInMemory(t *testing.T) {
	l := open(t, "", 0)
	for i := range 2 * remembered {
		add(t, l, Record{URL: page(i), Outcome: Fetched})
	}
	all, err := l.Recent(5000)
	require.NoError(t, err)
	require.Len(t, all, remembered)
	assert.Equal(t, page(2*remembered-1), all[0].URL)
	assert.Equal(t, page(remembered), all[len(all)-1].URL)
}

// Who reads while files are rotated and removed sees whole records, in order.
func TestReadingWhileItRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ends.jsonl")
	l := open(t, path, 64<<10)
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 5000 {
			assert.NoError(t, l.Add(Record{URL: page(i), Outcome: Fetched, Count: int64(i)}))
		}
	})
	for range 20 {
		last := int64(-1)
		for r, err := range NewView(path).Backward() {
			require.NoError(t, err)
			if r.URL == "" {
				continue
			}
			if last >= 0 {
				require.Equal(t, last-1, r.Count)
			}
			last = r.Count
		}
	}
	writing.Wait()
}

func TestBadOptionsAreRefused(t *testing.T) {
	_, err := Open(Options{MaxBytes: 1})
	require.ErrorContains(t, err, "MaxBytes is 1; want >= 65536")
	l := open(t, "", 0)
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Add(Record{}), ErrClosed)
	require.NoError(t, l.Close())
}

// What does one record cost, and what does it cost to find the oldest of a full log?
func BenchmarkLog(b *testing.B) {
	record := func(i int) Record {
		return Record{URL: page(i), Host: "a.example", Outcome: Fetched, Status: 200, Bytes: 12345, Seconds: 0.123, Digest: "sha1:ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", Type: "text/html", Priority: 3, Visit: 1, Attempt: 1}
	}
	b.Run("Add", func(b *testing.B) {
		l, err := Open(Options{Path: filepath.Join(b.TempDir(), "ends.jsonl")})
		require.NoError(b, err)
		for i := 0; b.Loop(); i++ {
			require.NoError(b, l.Add(record(i)))
		}
		require.NoError(b, l.Close())
	})
	b.Run("Find/256MiB", func(b *testing.B) {
		l, err := Open(Options{Path: filepath.Join(b.TempDir(), "ends.jsonl")})
		require.NoError(b, err)
		for i := range 1_050_000 {
			require.NoError(b, l.Add(record(i)))
		}
		b.ResetTimer()
		for b.Loop() {
			_, ok, err := l.Find("http://a.example/none")
			require.NoError(b, err)
			require.False(b, ok)
		}
		require.NoError(b, l.Close())
	})
}

// A copy that is made while the log goes on is a log of its own.
func TestACopyIsALog(t *testing.T) {
	dir := t.TempDir()
	l := open(t, filepath.Join(dir, "ends.jsonl"), 64<<10)
	for i := range 1000 {
		add(t, l, Record{URL: page(i), Outcome: Fetched})
	}
	copied := filepath.Join(dir, "copy")
	require.NoError(t, l.CopyTo(t.Context(), copied))
	want := urls(t, l.All())
	for i := range 1000 {
		add(t, l, Record{URL: page(1000 + i), Outcome: Fetched})
	}
	path := filepath.Join(copied, "ends.jsonl")
	assert.Equal(t, want, urls(t, NewView(path).All()))
	open(t, path, 64<<10)
	require.ErrorContains(t, open(t, "", 0).CopyTo(t.Context(), dir), "no files")
}

func TestSentences(t *testing.T) {
	for want, r := range map[string]Record{
		"fetched with status 200: 17 bytes in 250ms":                          {Outcome: Fetched, Status: 200, Bytes: 17, Seconds: 0.25},
		"the server answered 404 Not Found":                                   {Outcome: Gone, Status: 404},
		"the server answered 301 Moved Permanently, and leads to http://b/":   {Outcome: Redirected, Status: 301, Target: "http://b/"},
		"try 2 failed, and it will be tried again: timeout":                   {Outcome: Failed, Attempt: 2, Reason: "timeout"},
		"given up: dns: no such host":                                         {Outcome: GivenUp, Reason: "dns: no such host"},
		"not fetched, refused by robots.txt: it forbids the URL":              {Outcome: Refused, Attempt: 1, Rule: "robots.txt", Reason: "it forbids the URL"},
		"a link that was not taken, refused by scope: host \"other.example\"": {Outcome: Refused, Rule: "scope", Reason: `host "other.example"`},
		"asked for again, and not changed since the visit before (304)":       {Outcome: Unchanged, Status: 304},
	} {
		assert.Equal(t, want, r.Sentence())
	}
}
