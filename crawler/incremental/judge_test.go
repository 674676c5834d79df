// This file tests what counts as a change, and servers that lie.

package incremental

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/neardup"
	"github.com/seed-7440039f/frontier/crawler/spool"
)

// prose returns a text with the given number of words.
func prose(words int) string {
	var b strings.Builder
	for i := range words {
		fmt.Fprintf(&b, "%s ", word(1000+7*i))
	}
	return b.String()
}

func read(t testing.TB, r *Revisits, raw []byte, status int, contentType, body string) (frontier.Result, []byte) {
	t.Helper()
	p := &crawler.Page{
		Lease:  frontier.Lease{Entry: frontier.Entry{URL: "http://a.example/"}},
		Result: &fetch.Result{Status: status, Header: http.Header{"Content-Type": {contentType}, "Location": {body}}, Body: spool.Of([]byte(body))},
	}
	switch status {
	case 304:
		p.Outcome.Result, p.Conditional = frontier.Unchanged, true
	case 404:
		p.Outcome.Result = frontier.Gone
	}
	raw = r.Read(p, raw)
	return p.Outcome.Result, raw
}

func TestWhatIsAChange(t *testing.T) {
	long := prose(400)
	for name, x := range map[string]struct {
		minChange    float64
		kind         string
		first, later string
		want         frontier.Result
	}{
		"nothing":                    {0, "text/html", "<p>one", "<p>one", frontier.Unchanged},
		"a word":                     {0, "text/html", "<p>one", "<p>two", frontier.Changed},
		"markup":                     {0, "text/html", "<p>one <b>two</b>", "<div>One, two!", frontier.Unchanged},
		"a date and a counter":       {0, "text/html", "<p>2026-01-02 visitors: 17", "<p>2027-12-31 visitors: 18", frontier.Unchanged},
		"what is around the page":    {0, "text/html", "<p>" + long + "<nav>a b</nav><footer>made at noon</footer>", "<p>" + long + "<nav>c d</nav><footer>made at midnight</footer>", frontier.Unchanged},
		"an advertisement":           {0, "text/html", "<p>news<div class='ad'>buy soap</div><script>x()</script>", "<p>news<div class='ad'>sell soap</div><script>y()</script>", frontier.Unchanged},
		"a word of a long page":      {0, "text/html", "<p>one " + long, "<p>two " + long, frontier.Changed},
		"the same, to be ignored":    {0.05, "text/html", "<p>one " + long, "<p>two " + long, frontier.Unchanged},
		"much of it, not ignored":    {0.05, "text/html", "<p>" + long, "<p>" + strings.ReplaceAll(long, "wa", "v"), frontier.Changed},
		"a word of a short page":     {0.05, "text/html", "<p>one", "<p>two", frontier.Changed},
		"bytes":                      {0, "image/png", "one 1", "one 2", frontier.Changed},
		"plain text":                 {0, "text/plain", "one 1", "one 2", frontier.Unchanged},
		"a sitemap's dates":          {0, "application/xml", "<lastmod>2026-01-01</lastmod>", "<lastmod>2026-01-02</lastmod>", frontier.Changed},
		"no Content-Type: its bytes": {0, "", "one", "two", frontier.Changed},
		"an empty page":              {0, "text/html", "", "", frontier.Unchanged},
	} {
		r, err := Open(Options{MinChange: x.minChange})
		require.NoError(t, err)
		got, raw := read(t, r, nil, 200, x.kind, x.first)
		assert.Equal(t, frontier.Visited, got, name)
		got, raw = read(t, r, raw, 200, x.kind, x.later)
		assert.Equal(t, x.want, got, name)
		got, raw = read(t, r, raw, 304, "", "")
		assert.Equal(t, frontier.Unchanged, got, name)
		_, raw = read(t, r, raw, 404, "", "")
		got, _ = read(t, r, raw, 200, x.kind, x.first)
		assert.Equal(t, frontier.Visited, got, "%s: there was no copy any more", name)
	}
}

// Changes that are too small to count add up.
func TestSmallChangesAddUp(t *testing.T) {
	r, err := Open(Options{MinChange: 0.1})
	require.NoError(t, err)
	words := strings.Fields(prose(300))
	_, raw := read(t, r, nil, 200, "text/plain", strings.Join(words, " "))
	var seen []int
	for i := range 30 {
		words[10*i] = "other"
		var got frontier.Result
		got, raw = read(t, r, raw, 200, "text/plain", strings.Join(words, " "))
		if got == frontier.Changed {
			seen = append(seen, i)
		}
	}
	assert.NotEmpty(t, seen)
	assert.Less(t, len(seen), 10)
}

func TestRedirects(t *testing.T) {
	r, err := Open(Options{})
	require.NoError(t, err)
	got, raw := read(t, r, nil, 301, "text/html", "/one")
	assert.Equal(t, frontier.Visited, got)
	got, raw = read(t, r, raw, 301, "text/html", "/one")
	assert.Equal(t, frontier.Unchanged, got)
	got, raw = read(t, r, raw, 302, "text/html", "/two")
	assert.Equal(t, frontier.Changed, got)
	got, _ = read(t, r, raw, 403, "text/html", "secret")
	assert.Equal(t, frontier.Visited, got)
}

// Another key's fingerprints say nothing.
func TestAnotherKey(t *testing.T) {
	r, err := Open(Options{})
	require.NoError(t, err)
	_, raw := read(t, r, nil, 200, "text/html", "one")
	for {
		other, err := Open(Options{})
		require.NoError(t, err)
		if other.keyPrint == r.keyPrint {
			continue // once in 65,536
		}
		got, raw := read(t, other, raw, 200, "text/html", "one")
		assert.Equal(t, frontier.Visited, got)
		got, _ = read(t, other, raw, 200, "text/html", "two")
		assert.Equal(t, frontier.Changed, got)
		return
	}
}

// A server that answers 304 forever is detected, and one that does not is trusted.
func TestForever304(t *testing.T) {
	for _, honest := range []bool{false, true} {
		inVirtualTime(t, func(t *testing.T) {
			w := newWeb()
			w.pages["http://a.example/"] = func(at time.Duration, _ int, h http.Header) answer {
				edition := word(int(at / (20 * day)))
				tag := `"` + edition + `"`
				if old := h.Get("If-None-Match"); old == tag || !honest && old != "" {
					return answer{status: 304}
				}
				a := text("edition %s", edition)
				a.header = map[string]string{"Etag": tag}
				return a
			}
			x := begin(t, w, Options{Schedule: schedule(8)})
			x.run(600*day, "http://a.example/")
			log := w.log["http://a.example/"]
			conditional, last := 0, 0
			for i, a := range log {
				if a.conditional {
					conditional++
					last = i
				}
			}
			c := x.r.Report().Counts
			t.Log(honest, len(log), conditional, last, c)
			if honest {
				assert.Greater(t, conditional, len(log)*9/10)
				assert.Greater(t, c.Changed, int64(20))
			} else {
				assert.Less(t, last, len(log)/2, "it is not asked so any more")
				assert.Greater(t, c.Changed, int64(10))
			}
		})
	}
}

// A server that answers 304 to what was not asked has no page; it does no harm.
func Test304ToEverything(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = func(time.Duration, int, http.Header) answer { return answer{status: 304} }
		x := begin(t, w, Options{Schedule: schedule(8)})
		x.run(600*day, "http://a.example/")
		c := x.r.Report().Counts
		assert.Zero(t, c.Changed+c.Unchanged)
		assert.Less(t, len(w.log["http://a.example/"]), 600*24)
	})
}

// Last-Modified helps if it is true, by whatever clock, and does no harm if it is not.
func TestLastModified(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, x := range map[string]struct {
		date, modified time.Time
		want           time.Time
	}{
		"none":                     {at, time.Time{}, time.Time{}},
		"no Date":                  {time.Time{}, at.Add(-time.Hour), at.Add(-time.Hour)},
		"the same clock":           {at, at.Add(-time.Hour), at.Add(-time.Hour)},
		"a clock two years ahead":  {at.Add(730 * day), at.Add(730*day - time.Hour), at.Add(-time.Hour)},
		"a clock ten years behind": {at.Add(-3650 * day), at.Add(-3650*day - time.Hour), at.Add(-time.Hour)},
		"later than Date: a lie":   {at, at.Add(100 * day), at.Add(100 * day)},
	} {
		p := &crawler.Page{Result: &fetch.Result{Header: http.Header{}}, Outcome: frontier.Outcome{Modified: x.modified}}
		if !x.date.IsZero() {
			p.Header.Set("Date", x.date.Format(http.TimeFormat))
		}
		p.Outcome.Ended = at
		var n note
		n.take(p, p.Outcome)
		n.tell(&p.Outcome)
		assert.Equal(t, x.want, p.Outcome.Modified, name)
		n.take(nil, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}) // the clock is as it was
		again := frontier.Outcome{Modified: x.modified}
		n.tell(&again)
		assert.Equal(t, x.want, again.Modified, name)
	}
}

// A server whose ETag and Last-Modified are of this moment at every fetch, its clock in
// the future, is as any other without them.
func TestValidatorsThatLie(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = steady("http://b.example/", "http://c.example/")
		for host, lies := range map[string]bool{"b": true, "c": false} {
			w.pages["http://"+host+".example/"] = func(at time.Duration, n int, _ http.Header) answer {
				a := text("edition %s", word(int(at/(7*day))))
				if lies {
					now := w.began.Add(at + 1000*day).UTC().Format(http.TimeFormat)
					a.header = map[string]string{"Etag": fmt.Sprintf(`"%d"`, n), "Last-Modified": now}
				}
				return a
			}
		}
		x := begin(t, w, Options{Schedule: schedule(2)})
		x.run(400*day, "http://a.example/")
		b, c := len(w.log["http://b.example/"]), len(w.log["http://c.example/"])
		assert.InEpsilon(t, c, b, 0.5)
		assert.Greater(t, c, 100)
	})
}

func TestNotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := note{run: byte(rapid.IntRange(0, 31).Draw(t, "run")), doubt: byte(rapid.IntRange(0, 3).Draw(t, "doubt"))}
		n.read, n.ending = rapid.Bool().Draw(t, "read"), ending(rapid.IntRange(0, int(seemed)).Draw(t, "ending"))
		n.ahead = rapid.Int32().Draw(t, "ahead")
		if rapid.Bool().Draw(t, "copy") {
			d := neardup.NewHasher([16]byte{}, neardup.Options{}).Text([]byte(prose(rapid.IntRange(0, 60).Draw(t, "words"))))
			n.copied = copyOf(&d, uint16(rapid.IntRange(0, 1<<16-1).Draw(t, "key")), rapid.Bool().Draw(t, "sketch"))
		}
		got, ok := parseNote(n.bytes())
		assert.True(t, ok)
		assert.Equal(t, n, got)
	})
}

func FuzzNote(f *testing.F) {
	f.Add([]byte{noteVersion})
	f.Add(note{}.bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, ok := parseNote(raw)
		if !ok {
			assert.Zero(t, n)
			return
		}
		again, ok := parseNote(n.bytes())
		assert.True(t, ok)
		assert.Equal(t, n, again)
		r := &Revisits{}
		r.compare(&n, &frontier.Outcome{}, n.copied, true)
	})
}

// A page whose note was lost is known still, by what the frontier keeps: it is not given up.
func TestNoteLost(t *testing.T) {
	r, err := Open(Options{})
	require.NoError(t, err)
	x := scheduler{r.plans, r}
	l := frontier.Lease{Entry: frontier.Entry{URL: "http://a.example/"}, Host: "a.example"}
	failed := frontier.Outcome{Result: frontier.Failed, Ended: time.Now()}
	assert.Nil(t, r.Ended(l, nil, failed, nil), "never read")
	due, _ := x.Next(frontier.Visit{Entry: l.Entry, Host: l.Host, Before: l.History, Outcome: failed})
	assert.True(t, due.IsZero(), "it is given up")

	_, l.History.State = r.plans.Next(frontier.Visit{Entry: l.Entry, Host: l.Host, Outcome: frontier.Outcome{Ended: failed.Ended}})
	n, ok := parseNote(r.Ended(l, nil, failed, nil))
	require.True(t, ok)
	assert.True(t, n.read)
	assert.EqualValues(t, 1, r.Report().Failed)
	assert.EqualValues(t, 1, r.Report().Schedule.Pages)
}
