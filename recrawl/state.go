// This file packs what is known about the changes of a page into four bytes.

package recrawl

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// State is what is known about a page: four bytes, stored with its URL.
//
//	byte 0  rate        level r: 1e-4 * 1e8^(r/255) changes per day
//	byte 1  confidence  0: never crawled; c: Gamma's alpha, 0.2 * 320^((c-1)/254)
//	byte 2  weight      int8 w: 1e8^(w/255), that is 1e-4 to 1e4; -128: 0
//	byte 3  flags       bits 0-3 mode (0-8: how suspect), 4-5 failures, or how far it is
//	                    confirmed that it is gone or denied,
//	                    6 a claim waits to be verified, 7 counted at its host
//
// Rates and weights have the same scale, of 7.5 % per step. The rate byte is the bucket that
// WebFountain stores for each page. The zero value is a never-crawled page of weight 1. Any four
// bytes are a valid State.
type State [4]byte

const (
	leastRate   = 1e-4 // changes per day
	leastWeight = 1e-4
	rateSpan    = 1e8
	leastAlpha  = 0.2
	mostAlpha   = 64
	noWeight    = math.MinInt8
)

// step is the natural logarithm of the ratio of neighbouring rates and weights.
var step = math.Log(rateSpan) / 255

var alphaStep = math.Log(mostAlpha/leastAlpha) / 254

// The modes of a page, in bits 0-3 of its flags. The first nine are levels of suspicion: how much more
// likely the results of its fetches are if the page changes at every fetch than if it does not.
const (
	steady       = 0 // the last fetch found no change
	unproven     = 3 // crawled once, or nothing speaks for or against it
	mostSuspect  = 8
	probing      = 9  // a probe is due
	probingAgain = 10 // the probe found a change: a second one is due
	probed       = 11 // a probe found that it does not change at every fetch
	volatile     = 12 // it changes at every fetch
	gone         = 13
	denied       = 14
)

func (s State) mode() byte {
	if m := s[3] & 15; m <= denied {
		return m
	}
	return steady
}

func (s *State) setMode(m byte) { s[3] = s[3]&^15 | m }

func (s State) count() byte { return s[3] >> 4 & 3 }

func (s *State) setCount(n byte) { s[3] = s[3]&^0x30 | min(n, 3)<<4 }

const (
	claimed = 1 << 6
	atHost  = 1 << 7
)

func (s State) has(flag byte) bool { return s[3]&flag != 0 }

func (s *State) set(flag byte, on bool) {
	s[3] &^= flag
	if on {
		s[3] |= flag
	}
}

// Crawled reports whether the page was ever read.
func (s State) Crawled() bool { return s[1] != 0 }

// Rate is the estimated number of changes per day, 1e-4 to 1e4.
func (s State) Rate() float64 { return rates[s[0]] }

// Confidence returns Gamma's alpha of the rate, 0.2 to 64: the standard deviation of the rate is
// Rate / sqrt(Confidence). It is 0 if the page was never crawled.
func (s State) Confidence() float64 {
	if s[1] == 0 {
		return 0
	}
	return leastAlpha * math.Exp(alphaStep*float64(s[1]-1))
}

// Weight returns the value of a fresh copy of the page, 1e-4 to 1e4, or 0.
func (s State) Weight() float64 {
	if int8(s[2]) == noWeight {
		return 0
	}
	return math.Exp(step * float64(int8(s[2])))
}

// Gone reports whether the page was found to be gone, and that was confirmed.
func (s State) Gone() bool { return s.mode() == gone && (s.count() == putAway || !s.Crawled()) }

// Volatile reports whether the page was found to change at every fetch.
func (s State) Volatile() bool { return s.mode() == volatile }

// String describes the state for people.
func (s State) String() string {
	modes := [...]string{"steady", "suspect 1", "suspect 2", "unproven", "suspect 4", "suspect 5", "suspect 6", "suspect 7", "suspect 8",
		"probing", "probing again", "probed", "volatile", "gone", "denied"}
	if !s.Crawled() {
		return fmt.Sprintf("never crawled, weight %.3g", s.Weight())
	}
	return fmt.Sprintf("%.3g changes/day (alpha %.2g), weight %.3g, %s", s.Rate(), s.Confidence(), s.Weight(), modes[s.mode()])
}

// rates are the rates of the 256 levels, per day.
var rates = func() (r [256]float64) {
	for i := range r {
		r[i] = leastRate * math.Exp(step*float64(i))
	}
	return r
}()

// weightLevel returns the nearest level of a weight. It returns noWeight for NaN and weights that
// are not positive.
func weightLevel(w float64) byte {
	if !(w > 0) {
		none := int8(noWeight)
		return byte(none)
	}
	return byte(int8(max(-127, min(127, math.Round(math.Log(w)/step)))))
}

// rateLevel returns the level of a rate per day, rounded up with a probability equal to its fraction; u
// is a random number from [0,1). Rounding to the nearest level would ignore weak evidence forever.
func rateLevel(rate, u float64) byte {
	return byte(max(0, min(255, math.Floor(math.Log(rate/leastRate)/step+u))))
}

func alphaLevel(alpha, u float64) byte {
	return byte(max(1, min(255, 1+math.Floor(math.Log(alpha/leastAlpha)/alphaStep+u))))
}

// Page is a page as its Scheduler sees it: the state, and what the caller stores with the URL. The
// zero value is a page that was never crawled.
type Page struct {
	State State
	Host  uint32    // the caller's number of the host
	Last  time.Time // end of the last fetch with a usable result; zero: none
	Due   time.Time // when it is fetched next; zero: not again
}

// recordSize is the length of a page's record.
const recordSize = 12

// AppendBinary appends the 12-byte record of the page: its state, then last and due as 32-bit Unix
// seconds, big endian, where 0 is the zero time. The host is not included. The error is always nil.
func (p Page) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, p.State[:]...)
	b = binary.BigEndian.AppendUint32(b, seconds(p.Last, 0))
	return binary.BigEndian.AppendUint32(b, seconds(p.Due, time.Second-1)), nil
}

// UnmarshalBinary reads a page's record, and leaves its host as it is.
func (p *Page) UnmarshalBinary(b []byte) error {
	if len(b) != recordSize {
		return fmt.Errorf("recrawl: a page's record has %d bytes; want %d", len(b), recordSize)
	}
	p.State = State(b)
	p.Last, p.Due = fromSeconds(binary.BigEndian.Uint32(b[4:])), fromSeconds(binary.BigEndian.Uint32(b[8:]))
	return nil
}

// seconds are a time's Unix seconds, held within 1 to 2^32-1.
func seconds(t time.Time, up time.Duration) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(max(1, min(math.MaxUint32, t.Add(up).Unix())))
}

func fromSeconds(s uint32) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}

// Known returns the state of a page that was crawled and whose rate, in changes per day, is well
// known from another source.
func Known(rate, weight float64) State {
	if !(rate > 0) {
		rate = leastRate
	}
	return State{rateLevel(rate, 0.5), alphaLevel(16, 0.5), weightLevel(weight), 0}
}
