// This file writes the lines of an export: one function for each kind.

package dump

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// version is the version of the format.
const version = 1

// lineWriter builds one line. Members with their zero value are left out.
type lineWriter struct{ jsonl.Writer }

// begin starts a line; end ends it.
func (l *lineWriter) begin() { l.Writer = append(l.Writer[:0], '{') }

func (l *lineWriter) end() []byte {
	l.Writer = append(l.Writer, '}', '\n')
	return l.Writer
}

// object begins an object under a name.
func (l *lineWriter) object(name string) {
	l.Name(name)
	l.Open()
}

// text writes a string under name; if it is not UTF-8, in base64 under name and "64".
func (l *lineWriter) text(name, s string) {
	if utf8.ValidString(s) {
		l.Word(name, s)
		return
	}
	l.binary(name+"64", []byte(s))
}

func (l *lineWriter) binary(name string, p []byte) {
	l.Name(name)
	l.Writer = append(base64.StdEncoding.AppendEncode(append(l.Writer, '"'), p), '"')
}

func (l *lineWriter) float(name string, x float64) {
	switch {
	case x == 0 && !math.Signbit(x):
	case math.IsNaN(x) || math.IsInf(x, 0):
		l.Word(name, strconv.FormatFloat(x, 'g', -1, 64))
	default:
		l.Float(name, x, 'g')
	}
}

func (l *lineWriter) duration(name string, d time.Duration) {
	if d != 0 {
		l.Word(name, d.String())
	}
}

// header is the first line.
func (l *lineWriter) header(h Header) []byte {
	l.begin()
	l.Int("frontier", version)
	l.Time("time", h.Moment)
	k := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, h.Key[0]), h.Key[1])
	l.Word("key", hex.EncodeToString(k))
	l.Time("held", h.Held)
	return l.end()
}

// trailer returns the last line; lines is the number of lines before it.
func (l *lineWriter) trailer(lines int64) []byte {
	l.begin()
	l.Number("end", lines)
	return l.end()
}

// crawl returns the line with the settings of a crawl.
func (l *lineWriter) crawl(s *row.Crawl) []byte {
	l.begin()
	l.Number("settings", int64(s.ID))
	if s.Weight != 1 {
		l.Int("weight", int64(s.Weight))
	}
	if s.Paused {
		l.Word("paused", "on")
	}
	l.limits("limits", &s.Limits)
	return l.end()
}

// limits writes an object of the nonzero limits.
func (l *lineWriter) limits(name string, x *quota.Limits) {
	if *x == (quota.Limits{}) {
		return
	}
	l.object(name)
	l.Int("waiting", x.Waiting)
	l.Int("served", x.Served)
	l.Int("bytes", x.Bytes)
	l.Int("errors", x.Errors)
	l.Int("depth", int64(x.Depth))
	l.duration("period", x.Period)
	l.Close()
}

// counts writes the use of limits.
func (l *lineWriter) counts(s *row.Usage) {
	if *s == (row.Usage{}) {
		return
	}
	l.object("counts")
	l.Time("since", s.Since)
	l.Int("served", s.Served)
	l.Int("bytes", s.Bytes)
	l.Int("errors", s.Errors)
	l.Close()
}

// usedByCrawl and usedByScope return lines with the use of the limits of a crawl or a scope.
func (l *lineWriter) usedByCrawl(id uint32, s *row.Usage) []byte {
	l.begin()
	l.Word("used", "crawl")
	l.Int("crawl", int64(id))
	l.counts(s)
	return l.end()
}

func (l *lineWriter) usedByScope(s row.Scope, x *row.Usage) []byte {
	l.begin()
	l.scope("used", s)
	l.counts(x)
	return l.end()
}

// value is a line of a value of the program's.
func (l *lineWriter) value(key string, v []byte) []byte {
	l.begin()
	l.text("value", key)
	l.binary("data", v)
	return l.end()
}

// forgotten is a line with the number of what was forgotten.
func (l *lineWriter) forgotten(x *row.Forgotten) []byte {
	l.begin()
	l.scope("forgotten", x.Scope)
	if x.OfCrawl {
		l.Number("within", int64(x.Crawl))
	}
	l.Int("number", int64(x.Number))
	return l.end()
}

// scope writes the kind of a scope under a name, and the scope's name.
func (l *lineWriter) scope(name string, s row.Scope) {
	switch {
	case !s.Named:
		l.Word(name, "all")
		return
	case s.Domain:
		l.Word(name, "domain")
	default:
		l.Word(name, "host")
	}
	l.text("name", s.Name)
}

// delay writes one of the shipped policies: {"fixed":"5s"} or {"factor":10,"min":"1s","max":"30s"}.
func (l *lineWriter) delay(name string, d row.Delay) {
	if d.Kind == row.NoDelay {
		return
	}
	l.object(name)
	switch d.Kind {
	case row.Fixed:
		l.Word("fixed", d.Max.String())
	case row.Factor:
		l.Float("factor", d.Factor, 'g')
		l.duration("min", d.Min)
		l.duration("max", d.Max)
	}
	l.Close()
}

// group returns the line of a group.
func (l *lineWriter) group(name string, s *row.Group) []byte {
	l.begin()
	l.text("group", name)
	l.Time("due", s.Due)
	l.delay("delay", s.Delay)
	l.Int("concurrency", int64(s.Concurrency))
	return l.end()
}

// host returns the line of a host.
func (l *lineWriter) host(name string, s *row.Host) []byte {
	l.begin()
	l.text("host", name)
	l.Time("due", s.Due)
	if s.Why != 0 {
		l.Word("why", clocks[s.Why])
	}
	l.duration("crawlDelay", time.Duration(s.CrawlDelay)*time.Millisecond)
	if s.Group != "" {
		l.text("joined", s.Group)
		if s.Assigned {
			l.Int("assigned", 1)
		}
	}
	l.Int("standing", int64(s.Standing))
	if t := &s.Trouble; *t != (row.Trouble{}) {
		l.object("trouble")
		l.Time("failed", t.Quiet)
		l.Time("free", t.Free)
		l.Int("failures", int64(t.Fails))
		l.Int("step", int64(t.Step))
		l.Int("from", int64(t.From))
		l.Int("search", int64(t.Search))
		l.Int("relapses", int64(t.Relapses))
		l.Bool("eased", t.Eased)
		l.Int("lanes", int64(t.Lanes))
		l.Int("usual", int64(t.Usual))
		l.Int("probes", int64(t.Probes))
		if t.Failure != 0 {
			l.Word("failure", Failures[t.Failure])
		}
		l.Close()
	}
	l.counts(&s.Used)
	return l.end()
}

// clocks are the names of the values of row.Host.Why; the first is left out.
var clocks = [row.Clocks]string{"", "delay", "crawl-delay", "retry-after", "back-off", "quarantine", "reopened"}

// Failures are the names of the values of row.Trouble.Failure.
var Failures = [row.Failures]string{"other", "dns", "connect", "timeout", "server", "unavailable", "too many requests"}

// Results are the names of the values of URL.Last; the first is left out.
var Results = [...]string{"visited", "changed", "unchanged", "gone", "failed", "denied"}

// url is a line of a URL.
func (l *lineWriter) url(u *URL) []byte {
	l.begin()
	l.text("url", u.URL)
	if u.Host != "" {
		l.text("host", u.Host)
	}
	l.Int("crawl", int64(u.Crawl))
	l.Int("priority", int64(u.Priority))
	l.Int("depth", int64(u.Depth))
	l.float("weight", u.Weight)
	if u.Due == instant.KeptMillis {
		l.Int("finished", 1)
	} else {
		l.Time("due", u.Due)
	}
	l.Int("fails", int64(u.Fails))
	if u.Last != 0 {
		l.Word("last", Results[u.Last])
	}
	l.Int("visits", int64(u.Visits))
	l.Int("changes", int64(u.Changes))
	l.Time("firstVisit", u.FirstVisit)
	l.Time("lastVisit", u.LastVisit)
	l.Time("lastChange", u.LastChange)
	l.Time("lastModified", u.LastModified)
	if u.State != [12]byte{} {
		l.binary("state", u.State[:])
	}
	if len(u.Meta) > 0 {
		l.binary("meta", u.Meta)
	}
	return l.end()
}

// marks is a line of marks of URLs that are known.
func (l *lineWriter) marks(ms []storage.Mark) []byte {
	l.begin()
	l.Name("marks")
	l.Writer = append(l.Writer, '"')
	for i := range ms { // 12 bytes are 16 characters
		l.Writer = base64.StdEncoding.AppendEncode(l.Writer, ms[i][:])
	}
	l.Writer = append(l.Writer, '"')
	return l.end()
}
