// This file takes back what a Done has taught that could not be committed: nobody
// may be contacted sooner because of an outcome that nobody has.

package frontier

// learnt is what outcomes have taught of a host that says how soon it may be
// contacted.
type learnt struct {
	crawlDelay int32
	troubled   bool
	trouble    trouble // the zero value if it is not troubled
}

func (f *Frontier) knownOf(id uint32) learnt {
	h := f.core.hosts.at(id)
	x := learnt{crawlDelay: h.crawlDelay, troubled: h.has(troubled)}
	if x.troubled {
		x.trouble = f.core.troubles[id]
	}
	return x
}

// mayUnlearn sees to it that a host is left alone again as it was before an outcome
// that made it faster, if that is not committed. What made it slower stays.
func (f *Frontier) mayUnlearn(o *op, id uint32, was learnt, p *plan) {
	now := f.knownOf(id)
	shorter := now.crawlDelay < was.crawlDelay
	better := was.troubled && p.outcome.Result != Failed && now.trouble != was.trouble
	if f.opts.Spill == nil || !shorter && !better {
		return
	}
	f.pinLocked(o, id)
	outcome := *p
	o.unlearn = func() {
		h := f.core.hosts.at(id)
		if shorter && h.crawlDelay == now.crawlDelay {
			h.crawlDelay = was.crawlDelay
			h.set(unsaved)
		}
		if better && f.knownOf(id).trouble == now.trouble {
			f.core.setTrouble(id, was.trouble)
			h.set(unsaved)
		}
		x := f.clocksLocked(id, &outcome)
		if due, why := x.due(); due > h.due {
			f.laterLocked(id, due, why)
		}
	}
}

// laterLocked leaves a host alone until due, wherever it is.
func (f *Frontier) laterLocked(id uint32, due int64, why why) {
	c := f.core
	switch c.hosts.at(id).place {
	case leased, loading:
		c.holdBack(id, due, why)
	case unbound, held, dying:
		c.holdBack(id, due, why) // found out when a token of it is taken
	default:
		c.detach(id)
		c.holdBack(id, due, why)
		c.settle(id, f.nowLocked())
	}
}
