// This file packs what is stored with a URL in addition to its record of package recrawl/adapter:
// what its copy looked like, and what that package needs to know about the last visit.

package incremental

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/neardup"
)

// Note: a byte of version, two of flags, 2 bytes of the key's fingerprint, 4 of the
// server's clock, 8 of the text's fingerprint, and the sketch's 84, if there is one.
const (
	noteVersion = 2
	noteSize    = 1 + 2 + 2 + 4 + 8
	sketchSize  = len(neardup.Sketch{})
)

// The flags of a note, in its first byte of flags and its second.
const (
	runMask    = 1<<5 - 1 // answers 304 in a row, at most 31
	doubtShift = 5        // 2 bits: whole answers in a row that were changes after 304s
	hasCopy    = 1 << 7

	endingMask = 1<<2 - 1
	wasRead    = 1 << 2
)

// ending is what a frontier's outcome does not say about a visit.
type ending byte

const (
	told    ending = iota // nothing: the outcome is complete
	refused               // a status above 400, equivalent to forbidden
	missed                // there is no robots.txt for now: it is not forbidden
	seemed                // it seems to be gone, though its status was 200
)

// note is stored with a URL. The zero value belongs to a URL that was never read.
type note struct {
	read   bool   // it was, at some time
	ending ending // the last
	ahead  int32  // how many seconds the server's clock was ahead of ours then
	run    byte   // answers 304 in a row
	doubt  byte   // 0 to 3: how little its 304s are believed
	copied
}

// copied describes what the copy looked like.
type copied struct {
	has    bool
	key    uint16 // of the hasher; another one's cannot be compared
	text   [8]byte
	sketch []byte // a byte of each value; nil if there is none
}

// parseNote reads a note. ok is false for other data, which makes the URL new.
func parseNote(b []byte) (n note, ok bool) {
	if len(b) != noteSize && len(b) != noteSize+sketchSize || b[0] != noteVersion {
		return note{}, false
	}
	n.run, n.doubt, n.has = b[1]&runMask, b[1]>>doubtShift&3, b[1]&hasCopy != 0
	n.ending, n.read = ending(b[2]&endingMask), b[2]&wasRead != 0
	n.key, n.ahead = binary.BigEndian.Uint16(b[3:]), int32(binary.BigEndian.Uint32(b[5:]))
	copy(n.text[:], b[9:])
	if len(b) > noteSize {
		n.sketch = b[noteSize:]
	}
	return n, true
}

func (n note) bytes() []byte {
	b := make([]byte, 0, noteSize+len(n.sketch))
	flags, more := min(n.run, runMask)|min(n.doubt, 3)<<doubtShift, byte(n.ending)
	if n.has {
		flags |= hasCopy
	}
	if n.read {
		more |= wasRead
	}
	b = binary.BigEndian.AppendUint16(append(b, noteVersion, flags, more), n.key)
	b = binary.BigEndian.AppendUint32(b, uint32(n.ahead))
	return append(append(b, n.text[:]...), n.sketch...)
}

// take records how a visit ended; p is nil if there was no answer.
func (n *note) take(p *crawler.Page, o frontier.Outcome) {
	n.ending = told
	switch {
	case o.Result == frontier.Failed:
		if o.Uncontacted {
			n.ending = missed
		}
		return
	case p == nil:
		return
	case o.Result == frontier.Visited && p.Status >= firstBad:
		n.ending = refused
	case o.Result == frontier.Gone && p.Status < firstMove:
		n.ending = seemed
	case o.Result <= frontier.Unchanged:
		n.read = true
	}
	n.ahead = 0
	if sent := p.SentAt(); !sent.IsZero() {
		ahead := sent.Sub(o.Ended).Round(time.Second) / time.Second
		n.ahead = int32(max(math.MinInt32, min(math.MaxInt32, ahead)))
	}
}

// tell converts the outcome of the last recorded visit to the terms of package recrawl/adapter,
// with times of our clock.
func (n *note) tell(o *frontier.Outcome) {
	switch {
	case n.ending == missed && o.Result == frontier.Denied:
		o.Result = frontier.Failed
	case n.ending == refused && o.Result == frontier.Visited:
		o.Result = frontier.Denied
	}
	if !o.Modified.IsZero() {
		o.Modified = o.Modified.Add(-time.Duration(n.ahead) * time.Second)
	}
}

// copyOf returns the stored form of a page's content.
func copyOf(p *neardup.Page, key uint16, sketch bool) copied {
	c := copied{has: true, key: key, text: [8]byte(p.Text[:8])}
	if sketch && p.Words >= neardup.MinWords {
		c.sketch = make([]byte, sketchSize)
		for i, x := range p.Sketch {
			c.sketch[i] = byte(x)
		}
	}
	return c
}

// change returns how much of a page differs from before, 0 to 1: neardup.Page.Change, computed from
// what is stored. For pages without a sketch any change is 1. Each value is compared by one byte,
// so 1 in 256 matches by chance.
func (c copied) change(before copied) float64 {
	if c.text == before.text {
		return 0
	}
	if c.sketch == nil || before.sketch == nil {
		return 1
	}
	same := 0.
	for i, x := range c.sketch {
		if x == before.sketch[i] {
			same++
		}
	}
	const chance = 1. / 256
	return math.Max(0, 1-(same/float64(sketchSize)-chance)/(1-chance))
}
