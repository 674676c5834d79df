// This file formats events, reasons, times and sizes for people.

package console

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
)

// notice formats an event.
func notice(e event.Event) Notice {
	n := Notice{At: e.Time.UTC(), Kind: e.Kind.String(), Host: e.Host, URL: e.URL}
	n.Host = cmp.Or(n.Host, e.Scope)
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if e.Reason != "" {
		say("%s", e.Reason)
	}
	if n.Host == "" && e.Crawl != 0 {
		say("of crawl %d", e.Crawl)
	}
	if e.URL != "" && e.Attempt > 0 {
		say("try %d%s", e.Attempt, strings.TrimSuffix(": "+e.Failure, ": "))
	}
	switch {
	case e.Count <= 0:
	case e.Kind == event.HostBackedOff:
		say("step %d of its back-off", e.Count)
	case e.Kind == event.HostQuarantined:
		say("%s in a row", plural(e.Count, "failure"))
	case e.Kind == event.HostGivenUp:
		say("%s", plural(e.Count, "URL"))
	case e.Kind == event.Stalled:
		say("%s out", plural(e.Count, "lease"))
	case e.Kind == event.Idle:
		say("%s", plural(e.Count, "URL"))
	case e.Kind == event.LinksRefused:
		say("%s", plural(e.Count, "link"))
	case e.Kind == event.StoreError, e.Kind == event.StoreWorks:
		say("%s", plural(e.Count, "write"))
	default:
		say("%s", Count(e.Count))
	}
	if u := e.Until.UTC(); !e.Until.IsZero() && u.YearDay() == n.At.YearDay() && u.Year() == n.At.Year() {
		say("until %s", u.Format("15:04:05"))
	} else if !e.Until.IsZero() {
		say("until %s", u.Format("2 January 2006 15:04:05"))
	}
	if e.Err != nil {
		say("%v", e.Err)
	}
	n.Text = strings.Join(said, "; ")
	return n
}

// Ago formats a duration in one or two units: "3 h 12 min".
func Ago(d time.Duration) string {
	if d < 0 {
		return "-" + Ago(-max(d, -math.MaxInt64)) // MinInt64 has no negative
	}
	for _, u := range []struct {
		name, below string
		size, part  time.Duration
	}{{"d", "h", 24 * time.Hour, time.Hour}, {"h", "min", time.Hour, time.Minute}, {"min", "s", time.Minute, time.Second}} {
		if d < u.size {
			continue
		}
		s := fmt.Sprintf("%d %s", d/u.size, u.name)
		if rest := d % u.size / u.part; rest > 0 {
			s += fmt.Sprintf(" %d %s", rest, u.below)
		}
		return s
	}
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%d s", d/time.Second)
	case d >= time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case d >= time.Millisecond:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d == 0:
		return "0 s"
	}
	return "below 1 ms"
}

// Size formats a number of bytes in a binary unit: "1.5 GiB".
func Size(n int64) string {
	x, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for math.Abs(x) >= 1024 && len(units) > 1 {
		x, units = x/1024, units[1:]
	}
	if units[0] == "B" || math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0f %s", x, units[0])
	}
	return fmt.Sprintf("%.1f %s", x, units[0])
}

// Count formats a number with spaces between thousands.
func Count(n int64) string {
	if n < 0 {
		return "-" + Count(-n)
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// Percent formats a share: "12.3 %".
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// Digits formats a number of any size by its first digits.
func Digits(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// Standing describes a host's standing: "2 levels down".
func Standing(levels int) string {
	switch {
	case levels < 0:
		return plural(int64(-levels), "level") + " down"
	case levels > 0:
		return plural(int64(levels), "level") + " up"
	}
	return "neither up nor down"
}

// words describes the limits.
func (l Limits) words() string {
	var said []string
	say := func(n int64, what string) {
		if n > 0 {
			said = append(said, plural(n, what))
		}
	}
	say(l.Waiting, "waiting URL")
	say(l.Served, "page")
	if l.Bytes > 0 {
		said = append(said, Size(l.Bytes))
	}
	say(l.Errors, "failure")
	if l.Depth > 0 {
		said = append(said, plural(int64(l.Depth), "link")+" from a seed")
	}
	if l.Period > 0 {
		said = append(said, "counted anew each "+Ago(time.Duration(l.Period)))
	}
	return strings.Join(said, ", ")
}

// why explains in a sentence why a host gets no lease now, and when that ends.
func why(h inspect.Host, now time.Time) string {
	s, ok := reasons[h.Reason]
	if !ok {
		s = h.Reason.String()
	}
	if h.Reason == inspect.ReasonGroup {
		s = fmt.Sprintf("its group %s may not be contacted yet", h.Group)
	}
	if own := limitsOf(h.Rule.HostLimits).words(); h.Reason == inspect.ReasonLimit && own != "" {
		s += "; it may have " + own
	}
	if all := limitsOf(h.Rule.Limits).words(); h.Reason == inspect.ReasonLimit && all != "" {
		s += "; all of its scope may have " + all
	}
	if !h.Until.IsZero() && h.Until.After(now) {
		ends := "that ends"
		if h.Reason == inspect.ReasonQuarantine {
			ends = "the next probe is"
		}
		s += fmt.Sprintf("; %s in %s", ends, Ago(h.Until.Sub(now)))
	}
	return s
}

// byHand reports whether an operator keeps a host from being contacted.
func byHand(r inspect.Reason) bool {
	return r == inspect.ReasonPaused || r == inspect.ReasonBlocked || r == inspect.ReasonLimit
}

var reasons = map[inspect.Reason]string{
	inspect.ReasonTurn:       "it may be served now: the next worker that asks may get it",
	inspect.ReasonNothing:    "nothing of it waits",
	inspect.ReasonNotBefore:  "its URLs wait for their time",
	inspect.ReasonLeased:     "its robots.txt or as many of its URLs as allowed at once are being fetched",
	inspect.ReasonDelay:      "it was contacted, and is left alone for its delay",
	inspect.ReasonCrawlDelay: "it was contacted, and its robots.txt asks for this Crawl-delay",
	inspect.ReasonRetryAfter: "it asked to be left alone, by Retry-After",
	inspect.ReasonBackoff:    "it failed, and is slowed down",
	inspect.ReasonQuarantine: "it keeps failing, so it gets only occasional probes",
	inspect.ReasonReopened:   "the crawl was killed, so that its last contact is not known: it is left alone as if it had been just then",
	inspect.ReasonBackQueue:  "it waits for its turn among hosts",
	inspect.ReasonReading:    "its next URL is being read from disk",
	inspect.ReasonPaused:     "it is paused",
	inspect.ReasonBlocked:    "it is blocked",
	inspect.ReasonLimit:      "it reached a limit",
}
