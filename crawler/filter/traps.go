// This file guards against sites without an end.

package filter

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dchest/siphash"
)

// TrapOptions are the limits beyond which a host's URLs look like a trap. The zero value has limits
// that few sites for people reach.
type TrapOptions struct {
	// Off allows everything.
	Off bool
	// MaxSegments is the maximum number of segments in a path. Zero means 32.
	MaxSegments int
	// MaxRepeats is how often segments may come one after the other in a path, or two neighbours
	// anywhere: see the function MaxRepeats. Zero means 2.
	MaxRepeats int
	// MaxParams is the maximum number of parameters in a query, MaxSameParam of parameters with the
	// same name. Zero means 16 and 4.
	MaxParams, MaxSameParam int
	// MaxFacets is the maximum number of fetched pages with at least three parameters per path.
	// Zero means 5000.
	MaxFacets int
	// MaxCalendar is the maximum number of fetched pages per host whose path or query ends in a date, as
	// calendars' do and articles' do not. Dates before 1900 and more than two years ahead are refused at
	// once. Zero means 2000; MaxSameText ends most calendars before.
	MaxCalendar int
	// MaxSessions is the maximum number of fetched pages per path with different values of a
	// parameter that has a session's name. Zero means 50.
	MaxSessions int
	// MaxPerPattern is the maximum number of fetched pages per host whose URLs differ only in
	// numbers, identifiers that look random, and the values of parameters. Zero means 500,000.
	MaxPerPattern int
	// MaxSameText is the maximum number of fetched pages per host and pattern that had the text of
	// another one (Target.Text), if they are more than half of its pages. Paths that have a segment twice
	// are one pattern. It also bounds two kinds of pages of a host with Target.Links: calendar pages that
	// lead only to other dates and to places where earlier ones led, and pages whose relative links go in
	// circles. Zero means 100.
	MaxSameText int
	// Now returns the time, to judge dates. Nil means time.Now.
	Now func() time.Time
}

func (o TrapOptions) withDefaults() TrapOptions {
	for _, x := range []struct {
		p *int
		n int
	}{
		{&o.MaxSegments, 32}, {&o.MaxRepeats, 2}, {&o.MaxParams, 16}, {&o.MaxSameParam, 4}, {&o.MaxFacets, 5000},
		{&o.MaxCalendar, 2000}, {&o.MaxSessions, 50}, {&o.MaxPerPattern, 500_000}, {&o.MaxSameText, 100},
	} {
		if *x.p == 0 {
			*x.p = x.n
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Traps is a Filter that refuses what looks like a trap. The counts of a host are forgotten when
// thousands of other hosts have followed, and with the process unless Save and Load are called. A
// trap may then start again, but only up to its limit each time.
type Traps struct {
	opts  TrapOptions
	shape Filter                    // needs no counts
	key   atomic.Pointer[[2]uint64] // of the sums; it changes with Load only
	tally tally
}

// NewTraps returns guards.
func NewTraps(o TrapOptions) *Traps {
	o = o.withDefaults()
	g := &Traps{opts: o, shape: All(MaxSegments(o.MaxSegments), MaxRepeats(o.MaxRepeats), MaxParams(o.MaxParams))}
	g.key.Store(&[2]uint64{rand.Uint64(), rand.Uint64()})
	return g
}

// counted is a class of pages with a limit per host.
type counted struct {
	rule string
	key  string // within the host
	most int
	what string
}

// Refuse implements Filter.
func (g *Traps) Refuse(t *Target) Reason {
	if g.opts.Off {
		return Reason{}
	}
	if r := g.shape.Refuse(t); r.Refused() {
		return r
	}
	params := t.params()
	if name, n := mostRepeated(params); n > g.opts.MaxSameParam {
		return refuse("facets", "parameter %.40q occurs %d times; at most %d", name, n, g.opts.MaxSameParam)
	}
	year, sure, dated := endsInDate(t, params)
	if sure && (year < 1900 || year > g.opts.Now().Year()+2) {
		return refuse("calendar", "year %d", year)
	}
	like := pattern(t, params)
	for _, c := range g.counts(t, params, like) {
		if n := g.count(t, c.rule, c.key); n >= c.most {
			return refuse(c.rule, "%d pages %s were fetched of the host", n, c.what)
		}
	}
	key := textKey(t, like)
	if same := g.count(t, "same-text", key); same >= g.opts.MaxSameText {
		if read := g.count(t, "text", key); 2*same > read {
			return refuse("same-text", "%d of %d pages with such URLs had the text of another one", same, read)
		}
	}
	if r := g.refuseDate(t, dated); r.Refused() {
		return r
	}
	return g.refuseCircle(t)
}

// textKey returns the class of URLs within which texts are compared.
func textKey(t *Target, like string) string {
	var few [16]string
	seen := few[:0]
	for s := range t.segments() {
		if hasLetter(s) && slices.Contains(seen, s) {
			return "again"
		}
		seen = append(seen, s)
	}
	return like
}

// Fetched implements Watcher.
func (g *Traps) Fetched(t *Target) {
	if g.opts.Off {
		return
	}
	params := t.params()
	like := pattern(t, params)
	for _, c := range g.counts(t, params, like) {
		g.add(t, c.rule, c.key)
	}
	if t.Text != 0 {
		g.compare(t, "text", textKey(t, like), t.Text)
	}
	if t.Links != nil {
		g.fetchedDate(t, params)
		g.fetchedCircle(t)
	}
}

// compare counts a page of a class, and whether an earlier page of the class had the same sum.
func (g *Traps) compare(t *Target, rule, class string, sum uint64) {
	g.add(t, rule, class)
	one := class + " " + strconv.FormatUint(sum, 36)
	if g.count(t, rule, one) > 0 {
		g.add(t, "same-"+rule, class)
	}
	g.add(t, rule, one)
}

func (g *Traps) count(t *Target, rule, key string) int { return g.tally.get(t.Host, g.sum(rule, key)) }

func (g *Traps) add(t *Target, rule, key string) { g.tally.add(t.Host, g.sum(rule, key)) }

func (g *Traps) sum(rule, key string) uint64 {
	k := g.key.Load()
	var room [256]byte
	b := room[:0]
	if n := len(rule) + len(" ") + len(key); n > len(room) {
		b = make([]byte, 0, n)
	}
	b = append(append(append(b, rule...), ' '), key...)
	return siphash.Hash(k[0], k[1], b)
}

// counts returns the classes of a URL with a pattern.
func (g *Traps) counts(t *Target, params []param, like string) []counted {
	path, session := withoutSession(t.Path)
	out := []counted{{"pattern", like, g.opts.MaxPerPattern, "with URLs that differ in numbers or values only"}}
	if len(params) >= 3 {
		out = append(out, counted{"facets", path, g.opts.MaxFacets, "of the path with three parameters and more"})
	}
	if _, _, ok := endsInDate(t, params); ok {
		out = append(out, counted{"calendar", "", g.opts.MaxCalendar, "that end in a date"})
	}
	for _, p := range params {
		session = session || isSession(p)
	}
	if session {
		out = append(out, counted{"session", path, g.opts.MaxSessions, "of the path with an id like a session's"})
	}
	return out
}

func mostRepeated(params []param) (name string, n int) {
	seen := map[string]int{}
	for _, p := range params {
		if seen[p.name]++; seen[p.name] > n {
			name, n = p.name, seen[p.name]
		}
	}
	return name, n
}

// pattern returns a URL without its numbers and identifiers: the names of parameters are sorted, and each
// counts once.
func pattern(t *Target, params []param) string {
	path, _ := withoutSession(t.Path)
	var b strings.Builder
	b.Grow(len(path) + 16)
	for s := range strings.SplitSeq(path, "/") {
		b.WriteByte('/')
		if isRandom(s) {
			b.WriteByte('*')
			continue
		}
		from := 0
		for i := 0; i < len(s); i++ {
			if !isDigit(s[i]) {
				continue
			}
			b.WriteString(s[from:i])
			b.WriteByte('0')
			for i+1 < len(s) && isDigit(s[i+1]) {
				i++
			}
			from = i + 1
		}
		b.WriteString(s[from:])
	}
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	slices.Sort(names)
	b.WriteString("?" + strings.Join(slices.Compact(names), "&"))
	return b.String()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// withoutSession cuts a session id off a path: ";jsessionid=...".
func withoutSession(path string) (string, bool) {
	i := strings.IndexByte(path, ';')
	if i < 0 {
		return path, false
	}
	name, value, _ := strings.Cut(path[i+1:], "=")
	return path[:i], isSession(param{name, value})
}

var sessionNames = []string{"sid", "sessid", "session", "sessionid", "jsessionid", "phpsessid", "aspsessionid", "session_id", "cfid", "cftoken", "zenid", "oscsid", "s"}

// isSession reports whether a parameter looks like a session's: it has one of the usual names and a
// value that is not a small number. A value that looks random may name a page (playlists, documents).
func isSession(p param) bool {
	return slices.Contains(sessionNames, strings.ToLower(p.name)) && len(p.value) >= 6 && strings.ContainsAny(p.value, "0123456789")
}

// isRandom reports whether s looks like an identifier made by a machine: 16 to 128
// characters of hexadecimal or base64, with letters and digits mixed.
func isRandom(s string) bool {
	if len(s) < 16 || len(s) > 128 {
		return false
	}
	digits, letters, changes, last := 0, 0, 0, byte(0)
	for _, c := range []byte(s) {
		kind := byte('l')
		switch {
		case isDigit(c):
			digits++
			kind = 'd'
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters++
		case c == '-' || c == '_' || c == '%' || c == '=':
			kind = last
		default:
			return false
		}
		if last != 0 && kind != last {
			changes++
		}
		last = kind
	}
	return digits >= 3 && letters >= 3 && changes >= len(s)/6
}

// endsInDate reports whether a URL ends in a date, as calendar pages do, and its year. A URL with
// an article's title after the date does not. sure means that only dates are written in this form:
// /2026/11 may be something else.
func endsInDate(t *Target, params []param) (year int, sure, ok bool) {
	parts := slices.AppendSeq(make([]string, 0, 16), t.segments())
	for i, p := range parts {
		if y, good := yearOf(p); good && datesOnly(parts[i+1:]) && len(parts) > i+1 {
			return y, false, true
		}
	}
	if n := len(parts); n > 0 {
		if y, good := isoDate(parts[n-1]); good {
			return y, true, true
		}
	}
	year, month := 0, false
	for _, p := range params {
		if y, good := isoDate(p.value); good {
			return y, true, true
		}
		switch name := strings.ToLower(p.name); {
		case strings.Contains(name, "year") || name == "y":
			if year, _ = strconv.Atoi(p.value); len(p.value) == 2 && year > 0 { // as people write it: 13, and 1999
				if year += 1900; year < 1970 {
					year += 100
				}
			}
		case strings.Contains(name, "month") || strings.Contains(name, "week") || name == "m":
			month = true
		}
	}
	ok = year > 0 && month
	return year, ok, ok
}

// yearOf reads a year that a calendar may show.
func yearOf(s string) (int, bool) {
	if len(s) != 4 || !isDigit(s[0]) { // as most: an error costs more than to look
		return 0, false
	}
	y, err := strconv.Atoi(s)
	return y, err == nil && y >= 1500 && y < 3000
}

// datesOnly reports whether segments are one or two: a month, a month and a day.
func datesOnly(parts []string) bool {
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || i > 1 || n < 1 || n > []int{12, 31}[i] {
			return false
		}
	}
	return true
}

// isoDate reads 2026-11, 2026-11-21 and 2026-1-2.
func isoDate(s string) (int, bool) {
	if len(s) < len("2006-01") || len(s) > len("2006-01-02") || s[4] != '-' { // as most
		return 0, false
	}
	for _, layout := range []string{"2006-01-02", "2006-01", "2006-1-2"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Year(), true
		}
	}
	return 0, false
}
