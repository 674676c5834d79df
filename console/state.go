// This file summarizes a crawl: one word, one sentence, and what slows it down. Everything that shows a
// Status takes these from here.

package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Values of Status.State.
const (
	StateRunning  = "running"
	StatePaused   = "paused"   // an operator's pause or block holds the whole crawl
	StateStopping = "stopping" // the last fetches are ending
	StateIdle     = "idle"     // nothing can be fetched now
	StateTrouble  = "trouble"  // something keeps it from going on
	StateEnded    = "ended"
	StateAtRest   = "at rest" // no process crawls; the folder was opened for inspection
)

// phase is the phase of a crawl's process.
type phase uint8

const (
	crawling phase = iota
	stopping
	ended
)

// life records the crawl's phase, and since when it has its state.
type life struct {
	mu     sync.Mutex
	phase  phase     // guarded by mu
	ending string    // guarded by mu; how it ended
	since  time.Time // guarded by mu; when state began
	state  string    // guarded by mu; the latest state
	looked time.Time // guarded by mu; when a reader last asked for the Status
	end    time.Time // guarded by mu; when the crawl ended
}

// Stopping records that the crawl is ending: fetches under way finish, and no others begin.
func (c *Console) Stopping() {
	c.life.mu.Lock()
	defer c.life.mu.Unlock()
	c.life.phase = max(c.life.phase, stopping)
}

// lookAgain is the interval at which an open page asks, with some time for the response.
const lookAgain = 3 * time.Second

// Ended records that the crawl has ended, and how, in a sentence without a full stop. If a reader is
// watching, Ended returns after the reader has seen it, or when cut is closed.
func (c *Console) Ended(cut <-chan struct{}, how string) {
	now := c.f.Now()
	c.life.mu.Lock()
	c.life.phase, c.life.ending, c.life.end = ended, how, now
	looked := now.Sub(c.life.looked) < 2*lookAgain
	c.life.mu.Unlock()
	if !looked {
		return
	}
	select {
	case <-time.After(lookAgain):
	case <-cut:
	}
}

// look records a reader's request.
func (c *Console) look(now time.Time) {
	c.life.mu.Lock()
	defer c.life.mu.Unlock()
	c.life.looked = now
}

func (c *Console) lookedAt() time.Time {
	c.life.mu.Lock()
	defer c.life.mu.Unlock()
	return c.life.looked
}

// facts are inputs of a crawl's state that Status does not show.
type facts struct {
	phase         phase
	ending        string
	atRest        bool
	fault         string    // the store's
	away          time.Time // since when no host answers
	workers       int
	maxPages      int64
	silent        bool // no host contacted recently answers
	quiet         bool // nothing was handed out for some seconds
	growth        float64
	states        hostStates
	recent, wrong int64 // requests of the last minute, and failed ones
	next          *time.Time
}

// judge sets State, Sentence, Pace and ETA.
func (s *Status) judge(x facts) {
	s.State, s.Sentence = s.stateOf(x)
	s.Pace, s.ETA = s.pace(x), s.eta(x)
}

func (s *Status) stateOf(x facts) (state, sentence string) {
	waits := s.waits()
	switch {
	case x.phase == ended:
		return StateEnded, join("; ", cmp.Or(x.ending, "The crawl has ended"), s.fetched(), waits)
	case x.atRest:
		return StateAtRest, "No process crawls it: " + waits
	case x.phase == stopping && s.Leased > 0:
		return StateStopping, fmt.Sprintf("%s under way to be finished, then it stops; %s, and what waits is kept", plural(s.Leased, "fetch"), s.fetched())
	case x.phase == stopping:
		return StateStopping, "It is being closed; " + s.fetched()
	case s.Paused:
		return StatePaused, join("; ", "Nothing is fetched until you unpause it", s.finishing(), s.fetched(), waits)
	case s.Blocked != nil:
		return StatePaused, join("; ", "Nothing is fetched until "+s.Blocked.Format("2 January 15:04:05 UTC"), s.finishing(), s.fetched(), waits)
	case x.fault != "":
		return StateTrouble, "The store does not work (" + x.fault + "); nothing is lost so far, and " + waits
	case !x.away.IsZero():
		return StateTrouble, fmt.Sprintf("No host has answered for %s: the network seems to be away; nothing is lost, and it goes on when a host answers; %s", Ago(s.Now.Sub(x.away).Round(time.Second)), waits)
	case x.recent >= 10 && 2*x.wrong > x.recent:
		return StateTrouble, fmt.Sprintf("%s of the last minute's %s failed; %s, %s", Count(x.wrong), plural(x.recent, "request"), s.fetched(), waits)
	case s.Waiting+s.Scheduled+s.Leased > 0 && (x.silent || x.states.of > 0 && x.states.n[hostSlowed]+x.states.n[hostProbed] == x.states.of):
		return StateTrouble, join("; ", "Every host that it asks fails", s.fetched(), waits)
	case s.Leased == 0 && s.Waiting+s.Scheduled == 0:
		if s.Known == 0 {
			return StateIdle, "Nothing to crawl yet: add a URL to begin"
		}
		return StateIdle, "Nothing is left to fetch; " + s.fetched()
	case s.Leased == 0 && x.quiet:
		return StateIdle, join("; ", s.idle(x), s.fetched(), waits)
	}
	return StateRunning, join("; ", join(", ", s.speed(), s.fetched(), waits), s.sick(), s.polite())
}

// join joins the texts that are not empty.
func join(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), by)
}

func (s *Status) speed() string {
	switch r := s.PagesPerSecond; {
	case r == 0 && s.Running < 60:
		return ""
	case r >= 10:
		return Count(int64(math.Round(r))) + " pages a second"
	case r >= 1:
		return short(r) + " pages a second"
	case r > 0:
		return short(60*r) + " pages a minute"
	}
	return "No page in the last minute"
}

// fetched describes how many pages were fetched, and since when, if earlier pages are not counted.
func (s *Status) fetched() string {
	if s.PagesSince == nil {
		return Count(s.Pages) + " fetched"
	}
	return Count(s.Pages) + " fetched since " + s.startWords()
}

// startWords describes since when pages are counted.
func (s *Status) startWords() string {
	layout := "15:04 UTC"
	if s.Now.Sub(*s.PagesSince) >= 12*time.Hour {
		layout = "2 January 15:04 UTC"
	}
	return s.PagesSince.Format(layout)
}

// Start is startWords for templates; empty if all pages are counted.
func (s Status) Start() string {
	if s.PagesSince == nil {
		return ""
	}
	return s.startWords()
}

// waits describes what waits, and where.
func (s *Status) waits() string {
	hosts := s.HostStates.Hosts
	text := "nothing waits"
	if s.Waiting > 0 {
		text = Count(s.Waiting) + " wait"
		if s.Waiting == 1 {
			text += "s"
		}
		if hosts > 0 && !s.HostStates.Part {
			text += " on " + plural(hosts, "host")
		}
	}
	if s.Scheduled > 0 {
		text += ", " + Count(s.Scheduled) + " scheduled"
	}
	return text
}

func (s *Status) finishing() string {
	if s.Leased == 0 {
		return ""
	}
	return plural(s.Leased, "fetch") + " under way"
}

func (s *Status) sick() string {
	var said []string
	if s.BackedOff > 0 {
		said = append(said, Count(s.BackedOff)+" slowed down")
	}
	if s.Quarantined > 0 {
		said = append(said, Count(s.Quarantined)+" in quarantine")
	}
	return strings.Join(said, ", ")
}

func (s *Status) polite() string {
	switch {
	case s.Traffic.Early > 0:
		return plural(s.Traffic.Early, "contact") + " too early"
	case s.Traffic.Contacts > 0:
		return "no contact too early"
	}
	return ""
}

func (s *Status) idle(x facts) string {
	next := ""
	if x.next != nil && x.next.After(s.Now) {
		next = "; the next contact is in " + Ago(x.next.Sub(s.Now).Round(time.Second))
	}
	switch {
	case s.Waiting == 0:
		return "Every URL waits for its time" + next
	case x.states.of > 0 && x.states.n[hostHeld] == x.states.of:
		return "All hosts are paused, blocked or at a limit"
	}
	return "All hosts wait" + next
}

// pace explains what limits the pace, and what would help.
func (s *Status) pace(x facts) string {
	h := x.states
	if h.of == 0 || s.State == StateEnded || s.State == StateAtRest {
		return ""
	}
	said := fmt.Sprintf("%s fetching, %s ready, %s delayed, %s backing off, %s in quarantine, %s held",
		plural(h.n[hostFetching], "host"), Count(h.n[hostReady]), Count(h.n[hostPausing]), Count(h.n[hostSlowed]), Count(h.n[hostProbed]), Count(h.n[hostHeld]))
	if h.part {
		said = "Of the largest hosts: " + said
	}
	switch {
	case s.State == StatePaused:
		return said + ". It is paused."
	case h.n[hostHeld] == h.of:
		return said + ". Rules and limits hold everything back."
	case h.n[hostReady] > 0 && x.workers > 0 && s.Leased >= int64(x.workers):
		return said + fmt.Sprintf(". All %d workers are busy and hosts are ready: more workers would help.", x.workers)
	case h.n[hostReady] <= h.of/10 && h.n[hostPausing] >= h.of/2:
		return said + ". Most hosts are between two contacts: more hosts would help, more workers would not."
	case h.n[hostSlowed]+h.n[hostProbed] >= (h.of+1)/2:
		return said + ". Most hosts fail: look at why before anything else."
	case h.n[hostHeld] >= (h.of+1)/2:
		return said + ". Rules and limits hold most hosts back."
	case h.n[hostReady] > 0:
		return said + ". Hosts are ready: workers take them as they become free."
	}
	return said + ". Every host is in use or waits for its delay: more hosts would help, more workers would not."
}

// eta estimates when the crawl will be done, or explains why that is unknown.
func (s *Status) eta(x facts) string {
	left := x.maxPages - s.Pages
	switch {
	case s.State == StateEnded || s.State == StateAtRest || s.State == StateStopping:
		return ""
	case s.State == StatePaused:
		return "No end in sight: it is paused."
	case s.Recrawl != nil:
		return "No end: pages are fetched again when that is worth it."
	case x.maxPages > 0 && left <= 0:
		return "Now: as many pages as it may fetch are fetched."
	case x.maxPages > 0 && s.PagesPerSecond > 0:
		return fmt.Sprintf("In about %s at this rate: %s of the %s it may fetch.", about(float64(left)/s.PagesPerSecond), plural(left, "page"), Count(x.maxPages))
	case s.Waiting == 0 && s.Leased == 0:
		return "Nothing waits."
	case s.Running < 60:
		return "Not known yet: it has run for less than a minute."
	case s.PagesPerSecond == 0:
		return "Not known: no page came in the last minute."
	case x.growth < 0:
		return fmt.Sprintf("In about %s, if the queue goes on to shrink by %s URLs a second.", about(float64(s.Waiting)/-x.growth), short(-x.growth))
	case x.growth == 0:
		return "No end in sight: as many URLs are found as fetched."
	}
	return fmt.Sprintf("No end in sight: the queue grows by %s URLs a second. What waits now takes %s at this rate.", short(x.growth), about(float64(s.Waiting)/s.PagesPerSecond))
}

// about formats a long time in few words.
func about(seconds float64) string {
	if seconds > 10*365*86400 {
		return "many years"
	}
	d := time.Duration(seconds * float64(time.Second))
	if d > time.Hour {
		d = d.Round(time.Minute)
	}
	return Ago(d)
}
