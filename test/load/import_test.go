// This file tests imports: into frontiers that are not empty, of lists, of malformed input, and
// with faults.

package load

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// A frontier keeps what it has: known URLs stay as they are, and marks under
// another key are counted.
func TestImportIntoAnother(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, x *harness.World) {
		w := harness.NewWorld(t, frontier.Options{})
		w.Add("http://a.example/1", "http://a.example/2", "http://gone.example/")
		for range 3 {
			if l := w.Next(); l.Host == "gone.example" {
				w.Fetched(l, 0, frontier.Outcome{})
			} else {
				w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue})
			}
		}
		first := w.Export()
		n, err := x.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/2", Meta: []byte("mine")}, frontier.Entry{URL: "http://x.example/"})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		done := x.Imported(first)
		assert.EqualValues(t, 1, done.URLs)
		assert.EqualValues(t, 1, done.KnownURLs)
		assert.EqualValues(t, 3, done.ForeignMarks)
		assert.Zero(t, done.Marks)
		text := x.Export()
		assert.Contains(t, text, `{"url":"http://a.example/2","priority":8,"meta":"bWluZQ=="}`)
		assert.Len(t, harness.LinesOf(text, "url"), 3)
		second := harness.NewWorld(t, frontier.Options{}) // empty: takes the key over, and so the marks
		done = second.Imported(first)
		assert.EqualValues(t, 1, done.Marks, "of the URL that is gone")
		n, err = second.F.Add(t.Context(), frontier.Entry{URL: "http://gone.example/"})
		require.NoError(t, err)
		assert.Zero(t, n, "it is known")
		done = second.Imported(first)
		assert.Zero(t, done.ForeignMarks, "the key is the same now")
	})
}

func TestImportOfAList(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		done, err := transfer.Import(t.Context(), w.F, strings.NewReader("\xef\xbb\xbf# seeds\r\nhttp://a.example/ # one\r\n\n  <http://b.example/> \n{\"url\":\"http://c.example/\",\"priority\":3}\nhttp://a.example/"), transfer.ImportOptions{Crawl: 7})
		require.NoError(t, err)
		assert.Equal(t, transfer.Imported{Lines: 6, URLs: 3, KnownURLs: 1}, done)
		assert.Equal(t, []string{
			`{"url":"http://a.example/","crawl":7,"priority":8}`,
			`{"url":"http://b.example/","crawl":7,"priority":8}`,
			`{"url":"http://c.example/","priority":3}`,
		}, harness.LinesOf(w.Export(), "url"))
	})
}

func TestImportsThatTheProgramChecks(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		text := `{"value":"bad","data":"eA=="}` + "\n" + `{"url":"http://a.example/","crawl":3}` + "\nhttp://b.example/\n"
		var crawls []uint32
		o := transfer.ImportOptions{Crawl: 4, CheckValue: func(key string, v []byte) error {
			assert.Equal(t, "x", string(v))
			return errors.New("is " + key)
		}, CheckCrawl: func(id uint32) error { crawls = append(crawls, id); return errors.New("is no crawl") }}
		done, err := transfer.Import(t.Context(), w.F, strings.NewReader(text), o)
		require.ErrorContains(t, err, "is bad")
		require.ErrorContains(t, err, "is no crawl")
		assert.Zero(t, done.URLs)
		o.SkipBad = true
		done, err = transfer.Import(t.Context(), w.F, strings.NewReader(text), o)
		require.ErrorContains(t, err, "is bad")
		assert.Equal(t, transfer.Imported{Lines: 3, Bad: 2, URLs: 1}, done)
		assert.Equal(t, []uint32{3, 3}, crawls, "that of a list is none of a line")
	})
}

// onlyReader hides that a reader can be read again.
type onlyReader struct{ io.Reader }

func TestMalformedImports(t *testing.T) {
	header := `{"frontier":1,"key":"00112233445566778899aabbccddeeff"}`
	for name, c := range map[string]struct {
		text string
		line int64
		says string
	}{
		"no JSON":            {"http://good.example/\n{", 2, "it ends where a string should be"},
		"no URL":             {"http://good.example/\nhello", 2, "host"},
		"unknown member":     {`{"url":"http://x.example/","colour":1}`, 1, "colour"},
		"wrong type":         {`{"url":"http://x.example/","depth":"deep"}`, 1, "depth"},
		"two values":         {`{"url":"http://x.example/"} {}`, 1, "where the end should be"},
		"no kind":            {`{"depth":1}`, 1, "no kind"},
		"two kinds":          {`{"url":"http://x.example/","group":"x"}`, 1, "several kinds"},
		"priority":           {`{"url":"http://x.example/","priority":9}`, 1, "priority 9"},
		"negative priority":  {`{"url":"http://x.example/","priority":-1}`, 1, "priority -1"},
		"depth":              {`{"url":"http://x.example/","depth":-1}`, 1, "Depth"},
		"count":              {`{"url":"http://x.example/","fails":-1}`, 1, "count"},
		"crawl":              {`{"url":"http://x.example/","crawl":-1}`, 1, "crawl"},
		"time":               {`{"url":"http://x.example/","due":"tomorrow"}`, 1, "tomorrow"},
		"not UTF-8":          {"{\"url\":\"http://x.example/\xff\"}", 1, "UTF-8"},
		"long host":          {`{"host":"` + strings.Repeat("x", 256) + `"}`, 1, "256"},
		"no host":            {`{"host":""}`, 1, "host"},
		"crawl delay":        {`{"host":"x","crawlDelay":"-1s"}`, 1, "crawlDelay"},
		"long crawl delay":   {`{"host":"x","crawlDelay":"10000h"}`, 1, "crawlDelay"},
		"no duration":        {`{"host":"x","crawlDelay":5}`, 1, "where a string should be"},
		"group":              {`{"group":""}`, 1, "group"},
		"scope":              {`{"rule":"planet"}`, 1, "name"},
		"scope of a name":    {`{"rule":"planet","name":"earth"}`, 1, "planet"},
		"delay":              {`{"rule":"all","delay":{}}`, 1, "delay"},
		"negative delay":     {`{"rule":"all","delay":{"fixed":"-1s"}}`, 1, "FixedDelay"},
		"concurrency":        {`{"rule":"all","concurrency":-4}`, 1, "Concurrency"},
		"paused":             {`{"rule":"all","paused":"maybe"}`, 1, "maybe"},
		"marks without key":  {`{"marks":""}`, 1, "header"},
		"marks":              {header + "\n" + `{"marks":"AAAA"}` + "\n{\"end\":2}", 2, "12 for each"},
		"marks in base 64":   {header + "\n" + `{"marks":"!"}` + "\n{\"end\":2}", 2, "base64"},
		"key":                {`{"frontier":1,"key":"abc"}`, 1, "key"},
		"header is late":     {"http://good.example/\n" + header, 2, "first line"},
		"version 0":          {`{"frontier":0}`, 1, "version"},
		"cut off":            {header + "\n" + `{"url":"http://good.example/"}`, 2, "cut off"},
		"lines are missing":  {header + "\n" + `{"url":"http://good.example/"}` + "\n{\"end\":3}", 3, "there were 3"},
		"after the end":      {header + "\n{\"end\":1}\nhttp://x.example/", 3, "after"},
		"list in an export":  {header + "\nhttp://x.example/\n{\"end\":2}", 2, "not a line"},
		"end without header": {`{"end":0}`, 1, "header"},
		"long line":          {"http://x.example/" + strings.Repeat("x", 2<<20), 1, "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
				before := harness.Timeless(w.Export())
				good := int64(strings.Count(c.text, "http://good.example/"))
				for _, r := range []io.Reader{strings.NewReader(c.text), onlyReader{strings.NewReader(c.text)}} {
					done, err := transfer.Import(t.Context(), w.F, r, transfer.ImportOptions{TempDir: t.TempDir()})
					var bad *transfer.LineError
					require.ErrorAs(t, err, &bad)
					assert.Equal(t, c.line, bad.Line)
					assert.ErrorContains(t, err, c.says)
					assert.Equal(t, transfer.Imported{}, done)
					require.Equal(t, before, harness.Timeless(w.Export()), "nothing has changed")
				}
				done, err := transfer.Import(t.Context(), w.F, strings.NewReader(c.text), transfer.ImportOptions{SkipBad: true})
				require.ErrorContains(t, err, c.says)
				assert.EqualValues(t, 1, done.Bad)
				assert.Equal(t, good, done.URLs, "the rest is imported")
			})
		})
	}
}

func TestImportRefusesNewerVersions(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	_, err := transfer.Import(t.Context(), w.F, strings.NewReader(`{"frontier":2}`), transfer.ImportOptions{SkipBad: true})
	require.ErrorIs(t, err, frontier.ErrVersion)
}

// A fault of the store ends an import; the same import continues from there.
func TestImportMeetsAFault(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	w.Varied()
	first := w.Export()
	for at := 1; at < 40; at++ {
		x := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		x.Clock.Set(w.Clock.Now())
		fault := errors.New("disk fault")
		x.Machine.Faults.FailNth(spilltest.Write, at, fault)
		_, err := transfer.Import(t.Context(), x.F, strings.NewReader(first), transfer.ImportOptions{})
		x.Machine.Faults.Heal()
		if err != nil {
			require.ErrorIs(t, err, fault)
			x.Imported(first)
		}
		require.Equal(t, harness.Timeless(first), harness.Timeless(x.Export()), "fault at write %d", at)
	}
}

// What was deleted is not exported, swept or not.
func TestExportWithoutWhatWasDeleted(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://x.test/")
		l := w.Next()
		if w.Machine != nil {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
		}
		_, err := w.F.Delete(t.Context(), scope.Domain("example"))
		require.NoError(t, err)
		urls := harness.LinesOf(w.Export(), "url")
		require.Len(t, urls, 1)
		require.Contains(t, urls[0], "x.test")
		w.Fetched(l, 0, frontier.Outcome{})
	})
}
