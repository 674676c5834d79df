// This file measures how fast counts grow.

package main

import "time"

// meterFor is the time over which a meter takes the mean.
const meterFor = 10 * time.Second

// meter tells how much of pages and bytes comes each second. The zero value has measured
// nothing.
type meter struct{ readings []reading }

type reading struct {
	at           time.Time
	pages, bytes int64
}

// add takes a reading. Those that are too old, or of a crawl that was started anew since, go.
func (m *meter) add(r reading) {
	if n := len(m.readings); n > 0 && (r.pages < m.readings[n-1].pages || r.bytes < m.readings[n-1].bytes) {
		m.readings = nil
	}
	m.readings = append(m.readings, r)
	for len(m.readings) > 2 && r.at.Sub(m.readings[1].at) >= meterFor {
		m.readings = m.readings[1:]
	}
}

// rates are the pages and bytes of a second.
func (m *meter) rates() (pages, bytes float64) {
	if len(m.readings) < 2 {
		return 0, 0
	}
	a, b := m.readings[0], m.readings[len(m.readings)-1]
	s := b.at.Sub(a.at).Seconds()
	if s <= 0 {
		return 0, 0
	}
	return float64(b.pages-a.pages) / s, float64(b.bytes-a.bytes) / s
}
