// These tests walk traps of each kind, and sites that are none.

package filter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// walk fetches URLs as long as they are wanted, up to a maximum; it returns how many were, and the
// rules that refused the others.
func walk(g *Traps, n int, url func(i int) string, text ...func(i int) uint64) (fetched int, refused map[string]int) {
	refused = map[string]int{}
	for i := range n {
		t := Split(url(i), 0)
		for _, text := range text {
			t.Text = text(i)
		}
		if r := g.Refuse(t); r.Refused() {
			refused[r.Rule]++
			continue
		}
		g.Fetched(t)
		fetched++
	}
	return fetched, refused
}

func TestTraps(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }
	day := func(i int) time.Time { return now().AddDate(0, 0, i-5000) }
	for name, c := range map[string]struct {
		o    TrapOptions
		url  func(i int) string
		most int
		rule string
	}{
		"a loop of relative links": {TrapOptions{}, func(i int) string { return "http://a/" + strings.Repeat("x/", i%100) }, 9999, "repeating-segments"},
		"a longer loop":            {TrapOptions{}, func(i int) string { return "http://a/" + strings.Repeat("x/y/z/", i%100) }, 9999, "repeating-segments"},
		"no bottom": {TrapOptions{}, func(i int) string {
			u := "http://a"
			for k := range i % 100 {
				u += fmt.Sprintf("/%c%c", 'a'+k%26, 'a'+k/26)
			}
			return u
		}, 9999, "too-deep"},
		"days in the path":   {TrapOptions{MaxCalendar: 100}, func(i int) string { return day(i).Format("http://a/2006/1/2") }, 100, "calendar"},
		"months in the path": {TrapOptions{MaxCalendar: 100}, func(i int) string { return now().AddDate(0, i-2000, 0).Format("http://a/cal/2006/01/") }, 100, "calendar"},
		"days in the query":  {TrapOptions{MaxCalendar: 100}, func(i int) string { return day(i).Format("http://a/cal?view=x&date=2006-01-02") }, 100, "calendar"},
		"year and month":     {TrapOptions{MaxCalendar: 100}, func(i int) string { return day(30 * i).Format("http://a/cal?year=2006&month=1") }, 100, "calendar"},
		"far years":          {TrapOptions{}, func(i int) string { return fmt.Sprintf("http://a/%d-05-01", 2029+i) }, 0, "calendar"},
		"facets in every order": {TrapOptions{MaxFacets: 100}, func(i int) string {
			p := []string{"a=1", "b=2", "c=3", "d=4"}
			rand.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
			return "http://a/list?" + strings.Join(p, "&") + fmt.Sprint("&e=", i)
		}, 100, "facets"},
		"facets that pile up":    {TrapOptions{}, func(i int) string { return "http://a/list?x=1" + strings.Repeat("&c=1", i%100) }, 9999, "facets"},
		"parameters without end": {TrapOptions{}, func(i int) string { return "http://a/?" + strings.Repeat("p&", i%100) + fmt.Sprint("q", i) }, 9999, "facets"},
		"session in the query":   {TrapOptions{}, func(int) string { return fmt.Sprintf("http://a/page/1?sid=%08x1", rand.Uint32()) }, 50, "session"},
		"session in the path":    {TrapOptions{}, func(int) string { return fmt.Sprintf("http://a/page/1;jsessionid=%08X1", rand.Uint32()) }, 50, "session"},
		"playlists":              {TrapOptions{}, func(int) string { return fmt.Sprintf("http://a/x?list=a1b%xc2d%x", rand.Uint64()|1<<63, rand.Uint64()) }, 3000, ""},
		"neighbours far apart": {TrapOptions{}, func(i int) string {
			return "http://a/" + strings.Repeat(fmt.Sprintf("www.b.example/intl/%d%c/", i, 'a'+i%26), i%9)
		}, 1100, "repeating-segments"},
		"numbers without end":      {TrapOptions{MaxPerPattern: 200}, func(i int) string { return fmt.Sprintf("http://a/item/%d?page=%d", i, i) }, 200, "pattern"},
		"identifiers without end":  {TrapOptions{MaxPerPattern: 200}, func(int) string { return fmt.Sprintf("http://a/item/%x1a2b3c4d5e6f7a", rand.Uint64()) }, 200, "pattern"},
		"switched off":             {TrapOptions{Off: true}, func(i int) string { return "http://a/" + strings.Repeat("x/", i%100) }, 3000, ""},
		"other hosts of one trap":  {TrapOptions{MaxPerPattern: 2}, func(i int) string { return fmt.Sprintf("http://h%d.example/", i) }, 3000, ""},
		"articles under their day": {TrapOptions{MaxCalendar: 5}, func(i int) string { return day(i).Format("http://a/2006/01/02/title-") + fmt.Sprint(i%7) }, 3000, ""},
		"an archive of numbers":    {TrapOptions{}, func(i int) string { return fmt.Sprintf("http://a/questions/%d/how-to-%d", i, i) }, 3000, ""},
		"pages with titles": {TrapOptions{MaxPerPattern: 5}, func(i int) string {
			return "http://a/wiki/" + strings.Repeat(string(rune('a'+i%26)), 1+i/26%100) + strings.Repeat("z", i/2600)
		}, 3000, ""},
		"lists with a page": {TrapOptions{}, func(i int) string { return fmt.Sprintf("http://a/list?cat=7&page=%d", i) }, 3000, ""},
	} {
		c.o.Now = now
		g := NewTraps(c.o)
		fetched, refused := walk(g, 3000, c.url) // the URLs of the growing ones repeat, as those of links do
		assert.LessOrEqual(t, fetched, c.most, "%s: %v", name, refused)
		if c.rule != "" {
			assert.Positive(t, refused[c.rule], "%s: %v", name, refused)
		} else {
			assert.Equal(t, 3000, fetched, "%s: %v", name, refused)
		}
		assert.True(t, g.tally.check())
	}
}

// A pattern whose pages have the text of others ends long before one whose pages differ.
func TestTrapsByText(t *testing.T) {
	names := []string{"products", "about", "contact", "news", "team"}
	token := func(int) string { return fmt.Sprintf("http://a/x?tok=a1b%xc2d%x", rand.Uint64()|1<<63, rand.Uint64()) }
	back := func(i int) string { return fmt.Sprintf("http://a/login?back=%%2Flogin%%3Fback%%3D%d", i) }
	wander := func(i int) string {
		u := "http://a"
		for range 3 + i%9 {
			u += "/" + names[rand.IntN(len(names))]
		}
		return u
	}
	leaf := func(i int) uint64 { return 1 + uint64(i%5) }
	own := func(i int) uint64 { return 1 + uint64(i) }
	for name, c := range map[string]struct {
		url  func(i int) string
		text func(i int) uint64
		most int
	}{
		"an id in each link":               {token, leaf, 200},
		"a page that quotes its own URL":   {back, leaf, 200},
		"relative links between sections":  {wander, leaf, 500},
		"ids of pages":                     {token, own, 3000},
		"a third have nothing":             {back, func(i int) uint64 { return uint64(i%3) * own(i) }, 3000},
		"a third say that there is nought": {back, func(i int) uint64 { return 1 + uint64(i%3)*own(i) }, 3000},
	} {
		fetched, refused := walk(NewTraps(TrapOptions{}), 3000, c.url, c.text)
		assert.LessOrEqual(t, fetched, c.most, "%s: %v", name, refused)
		if c.most == 3000 {
			assert.Equal(t, c.most, fetched, "%s: %v", name, refused)
		}
	}
}

func TestWhatIsNoTrap(t *testing.T) {
	g := NewTraps(TrapOptions{})
	for _, u := range []string{
		"http://a/docs/en/docs/", "http://a/1/1/1/1/1", "http://a/1234/5", "http://a/12345/1", "http://a/2030/10", "http://a/item/18991231",
		"http://a/news/a-title/-/1648/19120482/-/ldeg16/-/index.html", "http://a/strip.aspx?m=05&d=17&y=13", "http://a/cal?y=99&m=1",
		"http://a/twisted/twisted/blob/trunk/src/twisted/web/twisted.py", "http://a/fs71/f/2012/310/f/f/x.jpg",
		"http://a/?a[]=1&a[]=2&a[]=3", "http://a/doc/python3/html/library/xml.etree.elementtree.html", "http://a/s?s=shoes", "http://a/?q=1900-13-45",
		"http://a/api/java.base/java/util/concurrent/locks/ReentrantReadWriteLock.ReadLock.html",
	} {
		assert.Zero(t, g.Refuse(Split(u, 0)), u)
	}
}

func TestIsRandom(t *testing.T) {
	for s, want := range map[string]bool{
		"3f2a9c81b7d04e6f": true, "d41d8cd98f00b204e9800998ecf8427e": true, "550e8400-e29b-41d4-a716-446655440000": true, "dGhpcyBpcyBh4a2B1c3d": true,
		"1234567890123456": false, "how-to-do-things-in-2026": false, "internationalization1": false, "short1a2": false,
		"concurrent-programming": false, "a b c 1 2 3 4 5 6 7 8": false,
	} {
		assert.Equal(t, want, isRandom(s), s)
	}
}

func TestTallyForgetsTheSmallest(t *testing.T) {
	var c tally
	for i := range 3 * maxPerTable {
		c.add("a", uint64(i))
		c.add("a", 1<<40)
	}
	assert.Equal(t, 3*maxPerTable, c.get("a", 1<<40))
	assert.True(t, c.check())
	for i := range maxHosts {
		c.add(fmt.Sprint(i), 1)
	}
	assert.Zero(t, c.get("a", 1<<40), "the least recently used host")
	assert.True(t, c.check())
}

func FuzzTraps(f *testing.F) {
	for _, u := range []string{"http://a/b?c=d", "http://a/2026/11?x=2026-11-21;y", ";/?&=;%", "http://[/;jsessionid=?"} {
		f.Add(u)
	}
	g := NewTraps(TrapOptions{})
	f.Fuzz(func(t *testing.T, u string) {
		x := Split(u, 1)
		if r := g.Refuse(x); !r.Refused() && r != (Reason{}) {
			t.Errorf("%+v", r)
		}
		g.Fetched(x)
	})
}

// check verifies that the table and the list agree and are bounded.
func (t *tally) check() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.hosts {
		if len(e.Value.(*table).counts) > maxPerTable {
			return false
		}
	}
	return len(t.hosts) == t.used.Len() && len(t.hosts) <= maxHosts
}
