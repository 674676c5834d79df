// This file tests the index: what it finds, forgets and keeps.

package neardup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

func open(t testing.TB, dir string, o Options) *Index {
	t.Helper()
	x, err := Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, x.Close()) })
	return x
}

func add(t testing.TB, x *Index, url, text string) Match {
	t.Helper()
	m, err := x.Add(url, x.Hasher().Text([]byte(text)))
	require.NoError(t, err)
	return m
}

// prose is a text of n words, another for each seed.
func prose(n, seed int) string {
	var b strings.Builder
	for i := range n {
		x := mix(uint64(seed)<<32 | uint64(i))
		for range 6 {
			b.WriteByte(byte('a' + x%26))
			x /= 26
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func TestAdd(t *testing.T) {
	x := open(t, t.TempDir(), Options{})
	text := prose(300, 1)
	assert.Equal(t, Match{}, add(t, x, "http://a.example/1", text))
	assert.Equal(t, Match{Kind: SameURL, URL: "http://a.example/1", Resemblance: 1, Known: true}, add(t, x, "http://a.example/1", text), "again")
	same := Match{Kind: SameByte, URL: "http://a.example/1", Resemblance: 1}
	assert.Equal(t, same, add(t, x, "http://a.example/2", text))
	same.Known = true
	assert.Equal(t, same, add(t, x, "http://a.example/2", text), "again")
	assert.Equal(t, SameText, add(t, x, "http://a.example/3", strings.ToUpper(text)).Kind)
	near := add(t, x, "http://a.example/4", text+"and three more")
	assert.Equal(t, Near, near.Kind)
	assert.Equal(t, "http://a.example/1", near.URL)
	assert.Greater(t, near.Resemblance, 0.9)
	assert.Equal(t, New, add(t, x, "http://a.example/5", prose(300, 2)).Kind)

	changed := add(t, x, "http://a.example/1", prose(300, 3))
	assert.Equal(t, Match{Kind: New, Known: true, Changed: true, Change: 1}, changed)
	assert.Equal(t, Match{Kind: SameURL, URL: "http://a.example/2", Resemblance: 1, Known: true}, add(t, x, "http://a.example/2", text), "the first is another page now")
	assert.Equal(t, New, add(t, x, "http://a.example/6", text).Kind)
	little := add(t, x, "http://a.example/6", text+"with a word")
	assert.True(t, little.Changed)
	assert.Less(t, little.Change, 0.1)

	first := map[string]string{}
	require.NoError(t, x.pages(func(url, of string) bool { first[url] = of; return true }))
	assert.Len(t, first, 6)
	assert.Equal(t, "http://a.example/5", first["http://a.example/5"])
	assert.Equal(t, "http://a.example/1", first["http://a.example/4"])
}

// What a URL was before leaves no rows.
func TestChangedPagesLeaveNothing(t *testing.T) {
	x := open(t, "", Options{})
	rows := func() (n int) {
		require.NoError(t, x.db.View(func(txn *badger.Txn) error { n = countRows(txn, nil); return nil }))
		return n
	}
	add(t, x, "http://a.example/", prose(100, 0))
	add(t, x, "http://b.example/", prose(100, 0))
	want := rows()
	for i := range 10 {
		add(t, x, "http://b.example/", prose(100, i+1)) // no duplicate any more
		add(t, x, "http://a.example/", prose(100, i+1))
		add(t, x, "http://a.example/", prose(100, i+100))
		add(t, x, "http://b.example/", prose(100, i+100))
		assert.Equal(t, want, rows())
	}
}

func TestItIsThereAfterwards(t *testing.T) {
	dir := t.TempDir()
	x := open(t, dir, Options{})
	text := prose(100, 1)
	add(t, x, "http://a.example/1", text)
	_, err := Open(dir, Options{})
	require.ErrorIs(t, err, frontier.ErrInUse)
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
	_, err = x.Add("http://a.example/2", Page{})
	require.ErrorIs(t, err, ErrClosed)

	for _, o := range []Options{{Threshold: 0.5}, {Shingle: 5}, {KeepNumbers: true}} {
		_, err = Open(dir, o)
		require.ErrorIs(t, err, ErrOptions)
	}
	x = open(t, dir, Options{Threshold: 0.9})
	assert.Equal(t, SameByte, add(t, x, "http://a.example/2", text).Kind)
	_, err = Open("", Options{Threshold: 2, MirrorShare: -1, MirrorPages: -3})
	assert.ErrorContains(t, err, "Threshold is 2; want > 0 and <= 1\nMirrorPages is -3; want >= 1\nMirrorShare is -1; want > 0 and <= 1")
}

// A folder of another version is refused as such, and stays as it is.
func TestFolderOfAnotherVersion(t *testing.T) {
	for _, other := range [][]byte{append([]byte{formatVersion - 1}, make([]byte, 19)...), {formatVersion + 1, 7}} {
		dir := t.TempDir()
		x := open(t, dir, Options{})
		require.NoError(t, x.db.Update(func(txn *badger.Txn) error { return txn.Set(metaKey, other) }))
		require.NoError(t, x.Close())
		for range 2 {
			_, err := Open(dir, Options{})
			require.ErrorIs(t, err, frontier.ErrVersion)
			require.NotErrorIs(t, err, ErrOptions)
			require.ErrorContains(t, err, fmt.Sprintf("it has version %d, this program knows %d", other[0], formatVersion))
		}
	}
}

// What Add returned for is there after kill -9.
func TestKill(t *testing.T) {
	if dir := os.Getenv("NEAR_KILL_DIR"); dir != "" {
		x, err := Open(dir, Options{})
		require.NoError(t, err)
		for i := 0; ; i++ {
			add(t, x, fmt.Sprintf("http://a.example/%d", i), prose(50, i))
			fmt.Println("added", i)
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "NEAR_KILL_DIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	last := -1
	for last < 50 {
		var word string
		_, err := fmt.Fscan(out, &word, &last)
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	x := open(t, dir, Options{})
	for i := range last + 1 {
		assert.Equal(t, SameByte, add(t, x, fmt.Sprintf("http://b.example/%d", i), prose(50, i)).Kind, i)
	}
}

// Of many that add the same at once one is the first.
func TestConcurrentAdds(t *testing.T) {
	x := open(t, "", Options{})
	var mu sync.Mutex
	kinds := map[Kind]int{}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 20 {
				m := add(t, x, fmt.Sprintf("http://a.example/%d/%d", w, i), prose(40, i))
				mu.Lock()
				kinds[m.Kind]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, map[Kind]int{New: 20, SameByte: 140}, kinds)
}

func TestDamagedRowsAreReported(t *testing.T) {
	_, err := parseRecord(make([]byte, 20))
	assert.ErrorIs(t, err, errCorrupt)
	r := record{url: "http://a.example/", page: Page{Words: 40}}
	b := r.bytes()
	got, err := parseRecord(b)
	require.NoError(t, err)
	assert.Equal(t, r, *got)
	_, err = parseRecord(b[:100])
	assert.ErrorIs(t, err, errCorrupt)
	r.page.Links = 1 << 60
	got, err = parseRecord(r.bytes())
	require.NoError(t, err)
	assert.Equal(t, r, *got)
	_, err = parseRecord(r.bytes()[:len(id{})+2*len(Print{})+4])
	assert.ErrorIs(t, err, errCorrupt)
	_, err = parseMeta(nil)
	assert.ErrorIs(t, err, errCorrupt)
	assert.False(t, errors.Is(err, ErrOptions))
}

func BenchmarkAdd(b *testing.B) {
	x := open(b, b.TempDir(), Options{})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		p := Page{Bytes: Print{byte(i), byte(i >> 8), byte(i >> 16)}, Words: 100}
		p.Text = p.Bytes
		for j := range p.Sketch {
			p.Sketch[j] = uint16(mix(uint64(i*bins + j)))
		}
		if _, err := x.Add(fmt.Sprintf("http://a.example/%d", i), p); err != nil {
			b.Fatal(err)
		}
	}
}

// Disk for each page, in a folder of its own.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	x := open(t, dir, Options{})
	pages := 2_000
	if *long {
		pages = 50_000
	}
	for i := range pages {
		p := x.Hasher().Text([]byte(prose(40, i/2))) // every other one is a duplicate
		_, err := x.Add(fmt.Sprintf("http://host%d.example/some/path/of/a/page/%d", i%100, i), p)
		require.NoError(t, err)
	}
	require.NoError(t, x.db.Flatten(1))
	require.NoError(t, x.Close())
	size := int64(0)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".sst") {
			size += info.Size()
		}
	}
	t.Logf("%d bytes for each page", size/int64(pages))
	assert.Less(t, size/int64(pages), int64(700))
}

// A copy knows what was added before it was begun, and is an index like any other.
func TestCopyTo(t *testing.T) {
	dir := t.TempDir()
	x := open(t, filepath.Join(dir, "x"), Options{})
	const n = 100
	for i := range n {
		add(t, x, fmt.Sprintf("http://a.example/%d", i), prose(40, i))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			add(t, x, fmt.Sprintf("http://b.example/%d", i), prose(40, i))
		}
	})
	to := filepath.Join(dir, "copies", "one")
	require.NoError(t, x.CopyTo(t.Context(), to))
	wg.Wait()
	require.ErrorIs(t, x.CopyTo(t.Context(), to), fs.ErrExist)
	y := open(t, to, Options{})
	for i := range n {
		url := fmt.Sprintf("http://a.example/%d", i)
		assert.Equal(t, Match{Kind: SameURL, URL: url, Resemblance: 1, Known: true}, add(t, y, url, prose(40, i)))
		assert.Equal(t, SameByte, add(t, y, fmt.Sprintf("http://c.example/%d", i), prose(40, i)).Kind)
	}
	require.NoError(t, x.Close())
	require.ErrorIs(t, x.CopyTo(t.Context(), to+"2"), ErrClosed)
}

// Pages that scripts fill have no words in common: only their bytes count.
func TestPagesWithoutWords(t *testing.T) {
	x := open(t, "", Options{})
	shell := func(url, app string) Match {
		m, err := x.Add(url, x.Hasher().HTML([]byte("<head><title>"+app+"</title></head><div id=root></div><script src="+app+".js></script>"), "text/html"))
		require.NoError(t, err)
		return m
	}
	assert.Equal(t, New, shell("http://a.example/", "shop").Kind)
	assert.Equal(t, New, shell("http://b.example/", "forum").Kind)
	assert.Equal(t, SameByte, shell("http://c.example/", "forum").Kind)
	assert.Zero(t, shell("http://a.example/", "shop2").Change, "no word of it is other")
	assert.Len(t, x.prints(&Page{}), 1, "simultaneous calls do not meet at the key of no text")
}

// pages calls yield for each URL with the first URL of the same content, which is the URL itself if
// it is no duplicate, in no particular order, until yield returns false.
func (x *Index) pages(yield func(url, first string) bool) error {
	x.life.RLock()
	defer x.life.RUnlock()
	if x.closed {
		return ErrClosed
	}
	return x.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Seek(recordPrefix); it.ValidForPrefix(recordPrefix); it.Next() {
			v, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			r, err := parseRecord(v)
			if err != nil {
				return err
			}
			first := r.url
			if f, err := getRecord(txn, r.first); err != nil {
				return err
			} else if f != nil {
				first = f.url
			}
			if !yield(r.url, first) {
				return nil
			}
		}
		return nil
	})
}
