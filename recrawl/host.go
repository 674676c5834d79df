// This file holds the data of single hosts: the price of hosts whose pages want more fetches than
// politeness allows, and the record of their claims.

package recrawl

import "errors"

// host is the data of a host that has a rate or has made claims.
type host struct {
	most     float64 // fetches per day that politeness allows; 0: enough
	own      *spread // its pages, if it ever had a rate
	shift    float64 // its price is the price times e^shift; 0: it is not bound
	take     float64 // fetches per day if it is bound; otherwise it is in demand.free
	copy     copied  // of its pages if it is bound, when its price was found last
	promised float64 // sum of 1/interval of its pages, per day
	blank    int64   // number of its pages whose last fetch is unknown
	wait     int64   // Dones until its price is found again

	hits, misses uint8  // claims that turned out true, and false
	pending      uint16 // claims that wait for their fetch
}

// reprice computes the price of a host with a separate histogram: the shift, and the fetches that
// its pages take.
func (h *host) reprice(p *prices, least, most float64) {
	h.wait = max(32, h.own.pages/16)
	d := h.own.at(p, 0, least, most)
	if h.most == 0 || d <= h.most {
		h.shift, h.take, h.copy = 0, 0, copied{}
		return
	}
	h.shift = solve(h.shift, h.most, 1e-9, mostPrice-leastPrice, func(shift float64) float64 { return h.own.at(p, shift, least, most) })
	h.take = h.most
	h.copy = h.own.copied(p, h.shift, least, most)
}

// SetHostRate sets how many fetches per second politeness allows a host. If its pages want more,
// the host gets a separate price. Zero means no limit. The new price applies to each page from its
// next Done on. A host with a rate takes 3 KB of memory.
func (s *Scheduler) SetHostRate(id uint32, perSecond float64) error {
	if err := checkBudget(perSecond); err != nil {
		return errors.New("recrawl: a host's rate must be a finite number >= 0")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hostOf(id)
	h.most = perDay(perSecond)
	if h.own == nil && h.most > 0 {
		h.own = new(spread)
	}
	if h.own != nil {
		s.reprice(h)
	}
	return nil
}

func (s *Scheduler) hostOf(id uint32) *host {
	h := s.hosts[id]
	if h == nil {
		h = &host{}
		s.hosts[id] = h
	}
	return h
}

// reprice computes the price of a host. Pages of a host that is not bound are part of the demand
// that determines the common price; a bound host takes a fixed share.
func (s *Scheduler) reprice(h *host) {
	was := h.shift > 0
	s.hostTake -= h.take
	s.hostCopy.add(h.copy, -1)
	h.reprice(&s.prices, s.least, s.most)
	s.hostCopy.add(h.copy, 1)
	s.hostTake = max(0, s.hostTake+h.take)
	if bound := h.shift > 0; bound != was {
		n := int32(1)
		if bound {
			n = -1
		}
		s.demand.free.merge(h.own, n)
		s.promised = max(0, s.promised+float64(n)*h.promised)
	}
}

// verified counts a claim that turned out true or false. Old ones fade.
func (h *host) verified(hit bool) {
	if h.hits == 255 || h.misses == 255 {
		h.hits /= 2
		h.misses /= 2
	}
	if hit {
		h.hits++
	} else {
		h.misses++
	}
}

// trust is the probability that a claim of the host is true.
func (h *host) trust() float64 {
	if h == nil {
		return 0.5
	}
	return float64(h.hits+1) / float64(int(h.hits)+int(h.misses)+2)
}
