// This file writes the lines of an export: one function for each kind.
// docs/export.md has the format, importlines.go reads it.

package frontier

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// exportVersion is the version of the format.
const exportVersion = 1

// marksPerLine is how many marks a line has at most.
const marksPerLine = 256

// lineWriter builds one line. Members are left out that have their zero value.
type lineWriter struct{ b []byte }

// begin starts a line; end ends it.
func (l *lineWriter) begin() { l.b = append(l.b[:0], '{') }

func (l *lineWriter) end() []byte {
	l.b = append(l.b, '}', '\n')
	return l.b
}

func (l *lineWriter) name(name string) {
	if l.b[len(l.b)-1] != '{' {
		l.b = append(l.b, ',')
	}
	l.b = append(l.b, '"')
	l.b = append(l.b, name...)
	l.b = append(l.b, '"', ':')
}

// text writes a string, under name, or what is not UTF-8 in base64 under name and
// "64".
func (l *lineWriter) text(name string, s []byte) {
	if utf8.Valid(s) {
		l.name(name)
		l.b = appendQuoted(l.b, s)
		return
	}
	l.binary(name+"64", s)
}

func (l *lineWriter) word(name, s string) {
	l.name(name)
	l.b = appendQuoted(l.b, bytesOf(s))
}

func (l *lineWriter) binary(name string, p []byte) {
	l.name(name)
	l.b = append(l.b, '"')
	l.b = base64.StdEncoding.AppendEncode(l.b, p)
	l.b = append(l.b, '"')
}

func (l *lineWriter) integer(name string, n int64) {
	if n != 0 {
		l.name(name)
		l.b = strconv.AppendInt(l.b, n, 10)
	}
}

func (l *lineWriter) float(name string, x float64) {
	switch {
	case x == 0 && !math.Signbit(x):
	case math.IsNaN(x) || math.IsInf(x, 0):
		l.word(name, strconv.FormatFloat(x, 'g', -1, 64))
	default:
		l.name(name)
		l.b = strconv.AppendFloat(l.b, x, 'g', -1, 64)
	}
}

// time writes Unix milliseconds.
func (l *lineWriter) time(name string, ms int64) {
	if ms == 0 {
		return
	}
	l.name(name)
	if t := time.UnixMilli(ms).UTC(); t.Year() >= 0 && t.Year() <= 9999 {
		l.b = append(l.b, '"')
		l.b = t.AppendFormat(l.b, exportTime)
		l.b = append(l.b, '"')
		return
	}
	l.b = strconv.AppendInt(l.b, ms, 10)
}

const exportTime = "2006-01-02T15:04:05.000Z"

func (l *lineWriter) duration(name string, d time.Duration) {
	if d != 0 {
		l.word(name, d.String())
	}
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s, which is UTF-8, as a JSON string.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		if c >= ' ' {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// header is the first line: when the export was made, the key of its marks, and
// until when hosts without a line of their own are left alone; 0: not at all.
func (l *lineWriter) header(now int64, key [2]uint64, held int64) []byte {
	l.begin()
	l.integer("frontier", exportVersion)
	l.time("time", now)
	k := keyBytes(key)
	l.word("key", hex.EncodeToString(k[:]))
	l.time("held", held)
	return l.end()
}

// trailer is the last line, after so many others.
func (l *lineWriter) trailer(lines int64) []byte {
	l.begin()
	l.name("end")
	l.b = strconv.AppendInt(l.b, lines, 10)
	return l.end()
}

// crawl is a line of what is set for a crawl.
func (l *lineWriter) crawl(id uint32, s *CrawlSettings) []byte {
	l.begin()
	l.name("settings")
	l.b = strconv.AppendUint(l.b, uint64(id), 10)
	if s.Weight != 1 {
		l.integer("weight", int64(s.Weight))
	}
	if s.Paused {
		l.word("paused", "on")
	}
	l.limits("limits", &s.Limits)
	return l.end()
}

// limits writes an object of what is not zero.
func (l *lineWriter) limits(name string, x *Limits) {
	if *x == (Limits{}) {
		return
	}
	l.name(name)
	l.b = append(l.b, '{')
	l.integer("waiting", x.Waiting)
	l.integer("served", x.Served)
	l.integer("bytes", x.Bytes)
	l.integer("errors", x.Errors)
	l.integer("depth", int64(x.Depth))
	l.duration("period", x.Period)
	l.b = append(l.b, '}')
}

// counts writes what was used of limits.
func (l *lineWriter) counts(s *usageState) {
	if *s == (usageState{}) {
		return
	}
	l.name("counts")
	l.b = append(l.b, '{')
	l.time("since", s.since)
	l.integer("served", s.served)
	l.integer("bytes", s.bytes)
	l.integer("errors", s.errors)
	l.b = append(l.b, '}')
}

// usedCrawl and usedScope are lines of what was used of the limits of a crawl or a
// scope.
func (l *lineWriter) usedCrawl(id uint32, s *usageState) []byte {
	l.begin()
	l.word("used", "crawl")
	l.integer("crawl", int64(id))
	l.counts(s)
	return l.end()
}

func (l *lineWriter) usedScope(s Scope, x *usageState) []byte {
	l.begin()
	l.scope("used", s)
	l.counts(x)
	return l.end()
}

// scope writes of what kind a scope is under a name, and its own name.
func (l *lineWriter) scope(name string, s Scope) {
	switch {
	case !s.named:
		l.word(name, "all")
		return
	case s.domain:
		l.word(name, "domain")
	default:
		l.word(name, "host")
	}
	l.text("name", bytesOf(s.name))
}

// rule is a line of what is set for a scope.
func (l *lineWriter) rule(s Scope, r *Rule) []byte {
	l.begin()
	l.scope("rule", s)
	l.delay("delay", r.Delay)
	l.integer("concurrency", int64(r.Concurrency))
	switch r.Paused {
	case On:
		l.word("paused", "on")
	case Off:
		l.word("paused", "off")
	}
	l.time("blockedUntil", wallMillis(r.BlockedUntil))
	l.integer("priority", int64(r.Priority))
	if last := bytes.TrimRight(r.Priorities[:], "\x00"); len(last) > 0 {
		l.name("priorities")
		l.b = append(l.b, '[')
		for i, p := range last {
			if i > 0 {
				l.b = append(l.b, ',')
			}
			l.b = strconv.AppendUint(l.b, uint64(p), 10)
		}
		l.b = append(l.b, ']')
	}
	l.limits("limits", &r.Limits)
	l.limits("hostLimits", &r.HostLimits)
	return l.end()
}

// delay writes one of the shipped policies: {"fixed":"5s"} or
// {"factor":10,"min":"1s","max":"30s"}.
func (l *lineWriter) delay(name string, d DelayPolicy) {
	if d == nil {
		return
	}
	l.name(name)
	l.b = append(l.b, '{')
	switch d := d.(type) {
	case fixedDelay:
		l.word("fixed", time.Duration(d).String())
	case factorDelay:
		l.name("factor")
		l.b = strconv.AppendFloat(l.b, d.k, 'g', -1, 64)
		l.duration("min", d.min)
		l.duration("max", d.max)
	}
	l.b = append(l.b, '}')
}

// group is a line of what is known of a group.
func (l *lineWriter) group(name []byte, s *groupState) []byte {
	l.begin()
	l.text("group", name)
	l.time("due", s.due)
	l.delay("delay", s.Delay)
	l.integer("concurrency", int64(s.Concurrency))
	return l.end()
}

// host is a line of what is known of a host.
func (l *lineWriter) host(name []byte, s *hostState) []byte {
	l.begin()
	l.text("host", name)
	l.time("due", s.due)
	if s.why != whyNone {
		l.word("why", whyNames[s.why])
	}
	l.duration("crawlDelay", time.Duration(s.crawlDelay)*time.Millisecond)
	if s.group != "" {
		l.text("joined", bytesOf(s.group))
		l.integer("assigned", int64(btoi(s.assigned)))
	}
	if t := &s.trouble; *t != (trouble{}) {
		l.name("trouble")
		l.b = append(l.b, '{')
		l.time("failed", s.quiet)
		l.time("free", s.free)
		l.integer("failures", int64(t.fails))
		l.integer("step", int64(t.step))
		l.integer("from", int64(t.from))
		l.integer("search", int64(t.search))
		l.integer("relapses", int64(t.relapses))
		if t.eased {
			l.name("eased")
			l.b = append(l.b, "true"...)
		}
		l.integer("lanes", int64(t.lanes))
		l.integer("usual", int64(t.usual))
		l.integer("probes", int64(t.probes))
		if t.kind != FailureOther {
			l.word("failure", t.kind.String())
		}
		l.b = append(l.b, '}')
	}
	l.counts(&s.used)
	return l.end()
}

// whyNames are the clocks that due comes from.
var whyNames = [whys]string{
	whyNone: "", whyDelay: "delay", whyCrawlDelay: "crawl-delay", whyRetryAfter: "retry-after",
	whyBackoff: "back-off", whyQuarantine: "quarantine", whyReopened: "reopened",
}

// url is a line of a URL that waits, or from due on if that is not 0.
func (l *lineWriter) url(b *body, crawl uint32, priority uint8, due int64) []byte {
	l.begin()
	l.text("url", b.url)
	l.integer("crawl", int64(crawl))
	l.integer("priority", int64(priority))
	l.integer("depth", int64(b.depth))
	l.float("weight", b.weight)
	l.time("due", due)
	l.integer("fails", int64(b.fails))
	if h := &b.history; *h != (History{}) {
		if h.Last != 0 {
			l.word("last", h.Last.String())
		}
		l.integer("visits", int64(h.Visits))
		l.integer("changes", int64(h.Changes))
		l.time("firstVisit", wallMillis(h.FirstVisit))
		l.time("lastVisit", wallMillis(h.LastVisit))
		l.time("lastChange", wallMillis(h.LastChange))
		l.time("lastModified", wallMillis(h.LastModified))
		if h.State != (State{}) {
			l.binary("state", h.State[:])
		}
	}
	if len(b.meta) > 0 {
		l.binary("meta", b.meta)
	}
	return l.end()
}

// marks is a line of marks of URLs that are known.
func (l *lineWriter) marks(ms []Mark) []byte {
	l.begin()
	l.name("marks")
	l.b = append(l.b, '"')
	for i := range ms { // 12 bytes are 16 characters
		l.b = base64.StdEncoding.AppendEncode(l.b, ms[i][:])
	}
	l.b = append(l.b, '"')
	return l.end()
}
