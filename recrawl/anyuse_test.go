// This file uses a Scheduler in every way that its methods allow, in any order.

package recrawl_test

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyTime is mostly within years of Monday, and sometimes at the end of all times.
var anyTime = rapid.Custom(func(t *rapid.T) time.Time {
	far := []time.Time{{}, time.Unix(0, 0), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(1969, 7, 20, 0, 0, 0, 0, time.UTC),
		time.Date(2106, 2, 8, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	if i := rapid.IntRange(0, 10*len(far)).Draw(t, "far"); i < len(far) {
		return far[i]
	}
	return monday.Add(time.Duration(rapid.Int64Range(-3e4, 3e4).Draw(t, "hours")) * time.Hour)
})

var anyNumber = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
	math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 5e-324, 1e-300, 1e-5, 1, 1e5, 1e300, math.MaxFloat64}))

// used is a Scheduler and the pages that it knows.
type used struct {
	*rapid.T
	s     *recrawl.Scheduler
	o     recrawl.Options
	pages []recrawl.Page
	known []bool
}

func (u *used) call() {
	i, now := rapid.IntRange(0, len(u.pages)-1).Draw(u.T, "page"), anyTime.Draw(u.T, "now")
	p := &u.pages[i]
	call := rapid.IntRange(0, 15).Draw(u.T, "call")
	if !u.known[i] {
		call = min(call, 1)
	}
	switch call {
	case 0:
		if u.known[i] {
			u.s.Forget(*p)
		}
		var v recrawl.Verdict
		*p, v = u.s.Admit(anyNumber.Draw(u.T, "weight"), uint32(i/3), now)
		u.number(v.Index)
		u.known[i] = true
	case 1:
		if u.known[i] {
			u.s.Forget(*p)
		}
		*p = recrawl.Page{Host: uint32(i / 3), Last: anyTime.Draw(u.T, "last"), Due: now}
		copy(p.State[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(u.T, "state"))
		*p = u.s.Learn(*p)
		u.known[i] = true
	case 2:
		*p = u.s.Hint(*p, anyTime.Draw(u.T, "claim"), now)
	case 3, 4:
		q, when := u.s.Recheck(*p, now)
		if *p = q; when.Before(now) || when.After(now.Add(365*day)) && when.After(p.Due) {
			require.Fail(u, "fetched at another time", "%v asked at %v: %v", *p, now, when)
		}
	case 5:
		_ = u.s.SetBudget(anyNumber.Draw(u.T, "budget"))
	case 6:
		_ = u.s.SetHostRate(uint32(i/3), anyNumber.Draw(u.T, "rate"))
	case 7:
		*p = u.s.Reweigh(*p, anyNumber.Draw(u.T, "weight"), now)
	case 8:
		u.number(u.s.Index(*p, now))
		require.True(u, u.s.Interval(*p) >= u.o.MinInterval && u.s.Interval(*p) <= u.o.MaxInterval)
		for _, b := range u.s.Buckets() {
			u.number(b.Rate, b.Weight, b.Freshness, float64(b.Pages))
		}
	case 9:
		data, err := u.s.MarshalBinary()
		require.NoError(u, err)
		restored, err := recrawl.New(u.o)
		require.NoError(u, err)
		require.NoError(u, restored.UnmarshalBinary(data), "its own snapshot")
		u.s = restored
	default:
		u.done(p, now)
	}
}

func (u *used) done(p *recrawl.Page, now time.Time) {
	v := recrawl.Visit{At: now, Outcome: recrawl.Outcome(rapid.IntRange(0, 6).Draw(u.T, "outcome")), Modified: anyTime.Draw(u.T, "modified")}
	q, answer := u.s.Done(*p, v)
	*p = q
	u.number(answer.Index)
	if p.Due.IsZero() {
		require.Zero(u, p.State.Weight(), "%v", *p)
		return
	}
	require.False(u, p.Due.Before(now.Add(u.o.MinInterval-time.Microsecond)), "%v, now %v", *p, now)
	require.False(u, p.Due.After(now.Add(u.o.MaxInterval)), "%v, now %v", *p, now)
}

func (u *used) number(all ...float64) {
	for _, v := range all {
		require.False(u, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%v", all)
	}
}

// check reads the figures, and compares the books with the pages.
func (u *used) check() {
	x := u.s.Stats()
	u.number(x.Price, x.Budget, x.Demand, x.Promised, x.Freshness, x.NewShare)
	require.LessOrEqual(u, x.Freshness, 1+1e-9)
	require.LessOrEqual(u, x.NewShare, 1.)
	var pages, fresh int64
	for i, p := range u.pages {
		switch st := p.State; {
		case !u.known[i] || st.Weight() == 0 || absent(st):
		case st.Crawled():
			pages++
		default:
			fresh++
		}
	}
	require.Equal(u, []int64{pages, fresh}, []int64{x.Pages, x.NewPages})
}

// absent is whether a page is gone or denied, also if that was not confirmed.
func absent(st recrawl.State) bool { m := st[3] & 15; return m == 13 || m == 14 }

// For any calls, in any order, at any time: the results are times within bounds, the figures are
// numbers, and the accounts match the pages.
func TestAnyUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &used{T: t, pages: make([]recrawl.Page, 9), known: make([]bool, 9),
			o: recrawl.Options{MinInterval: time.Minute, MaxInterval: 365 * day, Seed: rapid.Uint64().Draw(t, "seed"),
				Budget: rapid.SampledFrom([]float64{0, 5e-324, 1e-9, 1, 1e300, math.MaxFloat64}).Draw(t, "budget"),
				Burst:  time.Duration(rapid.SampledFrom([]int64{0, 1e6, 3600e9, math.MaxInt64}).Draw(t, "burst"))}}
		var err error
		u.s, err = recrawl.New(u.o)
		require.NoError(t, err)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			u.call()
			u.check()
		}
		before := u.s.Stats()
		u.s.Recount(func(yield func(recrawl.Page) bool) {
			for i, p := range u.pages {
				if u.known[i] && !yield(p) {
					return
				}
			}
		})
		u.check()
		require.InDelta(t, before.Promised, u.s.Stats().Promised, 1e-6+1e-6*before.Promised)
		for i, p := range u.pages {
			if u.known[i] {
				u.s.Forget(p)
				u.known[i] = false
			}
		}
		u.check()
	})
}

// FuzzSnapshot restores what is whole by its checksum, and anything but.
func FuzzSnapshot(f *testing.F) {
	var version byte
	for _, hosts := range []uint32{0, 3} {
		s := scheduler(f, recrawl.Options{Budget: 1. / 60})
		for h := range hosts {
			require.NoError(f, s.SetHostRate(h, 1./900))
		}
		live(s, known(s, 50, func(i int) uint32 { return uint32(i % 4) }), 0, 500)
		data, err := s.MarshalBinary()
		require.NoError(f, err)
		body := data[:len(data)-4]
		version = body[0]
		f.Add(body)
		for i := 0; i < len(body); i += 3 { // one byte is another
			bad := slices.Clone(body)
			bad[i] ^= 0xd5
			f.Add(bad)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := scheduler(t, recrawl.Options{Budget: 1. / 60})
		before := s.Stats()
		if err := s.UnmarshalBinary(binary.BigEndian.AppendUint32(slices.Clone(body), crc32.ChecksumIEEE(body))); err != nil {
			var corrupt *recrawl.CorruptError
			if len(body) > 0 && body[0] != version {
				require.ErrorIs(t, err, recrawl.ErrVersion)
			} else {
				require.ErrorAs(t, err, &corrupt)
			}
			require.Equal(t, before, s.Stats(), "it is as it was")
			return
		}
		live(s, known(s, 20, func(i int) uint32 { return uint32(i % 4) }), 0, 300)
		x := s.Stats()
		for _, v := range []float64{x.Price, x.Budget, x.Demand, x.Promised, x.Freshness, x.NewShare} {
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%+v", x)
		}
		require.Positive(t, x.Pages)
	})
}
