// This file stops crawls that have used up a limit, and lets them go on.

package frontier

// crawlHold says why a crawl's URLs may not be handed out.
type crawlHold uint8

const (
	crawlRuns    crawlHold = iota
	crawlPaused            // until somebody resumes it
	crawlSpent             // a limit without a period is reached
	crawlLimited           // one with a period is
)

// stoppedCrawl is a crawl of which hosts in its ready lists are to be looked at: they
// may hold slots of groups.
type stoppedCrawl struct {
	slot  uint32
	level int
	left  int // hosts of the level; less than 0: not counted yet
}

// regroupAtOnce is how many hosts of stopped crawls are looked at under one lock.
const regroupAtOnce = 64

// judgeCrawl stops a crawl, or lets it go on, as its settings and what it has used
// say.
func (c *core) judgeCrawl(x *crawl, now int64) {
	now = c.date(now)
	hold, until := crawlRuns, int64(0)
	if x.use != nil {
		c.tellUsed(x.use, &x.settings.Limits, now, Event{Crawl: x.id, Reason: "crawl "})
		switch _, until = x.use.spent(&x.settings.Limits, now); until {
		case 0:
		case never:
			hold = crawlSpent
		default:
			hold = crawlLimited
		}
	}
	if x.settings.Paused {
		hold = crawlPaused
	}
	slot := c.slotOf(x.id)
	c.holdCrawl(slot, x, hold)
	if hold != crawlLimited {
		return
	}
	if ends := &c.limits.crawlEnds; x.ends {
		ends.fix(x.endPos, until)
	} else {
		x.ends = true
		ends.push(timeItem{at: until, id: slot})
	}
}

// holdCrawl changes why a crawl's URLs may not be handed out.
func (c *core) holdCrawl(slot uint32, x *crawl, hold crawlHold) {
	if x.hold == hold {
		return
	}
	ran := x.runs()
	c.countStopped(x, -1)
	if x.ends {
		x.ends = false
		c.limits.crawlEnds.remove(x.endPos)
	}
	x.hold = hold
	c.countStopped(x, 1)
	if ran && c.limits != nil && hold != crawlPaused {
		c.limits.stopped = append(c.limits.stopped, stoppedCrawl{slot: slot, level: 1, left: -1})
	}
	c.offer(slot, x)
}

// countStopped counts a crawl among those that do not run, if it does not.
func (c *core) countStopped(x *crawl, sign int64) {
	if x.runs() {
		return
	}
	c.pausedCrawls += int(sign)
	c.pausedURLs += sign * x.stats.Waiting
	if x.hold == crawlLimited {
		c.limitedURLs += sign * x.stats.Waiting
	}
	for why, n := range x.held {
		c.held.urls[why] -= sign * n
	}
}

// lift lets crawls go on whose period has ended, and hosts that wait for the same. It
// reports whether it came to the end.
func (c *core) lift(now int64) bool {
	b := c.limits
	for n := 0; b.crawlEnds.min() <= c.date(now); n++ {
		if n == unblockAtOnce {
			return false
		}
		c.judgeCrawl(c.crawls[b.crawlEnds.Items[0].id], now)
	}
	for n := 0; b.ends.min() <= c.date(now); n++ {
		if n == reviewAtOnce {
			return false
		}
		c.reviewHost(b.ends.Items[0].id, now)
	}
	return c.freeStopped(now)
}

// freeStopped takes hosts that have nothing to offer any more out of the ready lists
// of crawls that were stopped.
func (c *core) freeStopped(now int64) bool {
	b := c.limits
	for n := regroupAtOnce; len(b.stopped) > 0; {
		if n <= 0 {
			return false
		}
		s := &b.stopped[0]
		x := c.crawls[s.slot]
		if x == nil || x.runs() || s.level > c.cfg.levels+1 {
			if b.stopped = b.stopped[1:]; len(b.stopped) == 0 {
				b.stopped = nil
			}
			continue
		}
		l := &x.lists[readies].at[s.level]
		if s.left < 0 {
			s.left = l.n // later ones are looked at when they come
		}
		k := min(n, s.left)
		c.regroup(l, k, now)
		n -= k + 1
		if s.left -= k; s.left == 0 {
			s.level, s.left = s.level+1, -1
		}
	}
	return true
}

// stopReason tells why nothing of a host's crawls is handed out, and until when.
func (c *core) stopReason(h *host, now int64) (Reason, int64) {
	reason, until := ReasonPaused, never
	for qid := h.queues; qid != 0; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		switch x := c.crawlOf(q); {
		case q.waiting == 0:
		case x.hold == crawlLimited:
			reason = ReasonLimit
			_, at := x.use.spent(&x.settings.Limits, c.date(now))
			until = min(until, c.moment(at))
		case x.hold == crawlSpent:
			reason = ReasonLimit
		}
	}
	return reason, until
}
