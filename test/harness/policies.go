// This file holds policies that record their calls.

package harness

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

// Diary is a Scheduler that stores a number in the State and records its calls.
type Diary struct {
	Again  func(v frontier.Visit) time.Time
	Due    time.Time // what Recheck returns
	Visits []frontier.Visit
	Asked  []string // by Recheck
	Ask    func()   // called by it, if set
}

// Next implements frontier.Scheduler.
func (d *Diary) Next(v frontier.Visit) (time.Time, frontier.State) {
	d.Visits = append(d.Visits, v)
	return d.Again(v), Numbered(Number(v.Before.State) + 1)
}

// Recheck implements frontier.Rechecker.
func (d *Diary) Recheck(e frontier.Entry, host string, h frontier.History, now time.Time) (time.Time, frontier.State) {
	d.Asked = append(d.Asked, host+" "+e.URL)
	if d.Ask != nil {
		d.Ask()
	}
	return d.Due, Numbered(Number(h.State) + 100)
}

// Numbered is a State with a number.
func Numbered(n uint32) (s frontier.State) {
	binary.LittleEndian.PutUint32(s[8:], n)
	return s
}

// Number is the number of a State.
func Number(s frontier.State) uint32 { return binary.LittleEndian.Uint32(s[8:]) }

// HourLater schedules a page an hour after its visit.
func HourLater(v frontier.Visit) time.Time { return v.Outcome.Ended.Add(time.Hour) }

// InBothWorldsWith runs a test in memory and on a store, each with a separate scheduler.
func InBothWorldsWith(t *testing.T, d Diary, o frontier.Options, test func(*testing.T, *World, *Diary)) {
	InBothWorlds(t, o, func(t *testing.T, w *World) {
		Ended(w, w.F)
		own := d
		w.Options.Scheduler = &own
		w.Open()
		test(t, w, &own)
	})
}

// Soon adds a URL that waits from then on.
func (w *World) Soon(url string, at time.Duration) {
	n, err := w.F.Add(w.Context(), frontier.Entry{URL: url, NotBefore: Dawn.Add(at)})
	require.NoError(w, err)
	require.Equal(w, 1, n)
}
