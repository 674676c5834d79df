// This file packs what is kept with a URL: its record of package recrawl, and what
// its copy looked like.

package revisit

import (
	"encoding/binary"
	"math"

	"github.com/seed-7440039f/frontier/crawler/near"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Note: a byte of version, one of flags, 2 bytes of the key's fingerprint, 12 of the
// record, 8 of the text's fingerprint, and the sketch's 84, if there is one.
const (
	noteVersion = 1
	noteSize    = 1 + 1 + 2 + 12 + 8
	sketchSize  = len(near.Sketch{})
)

// The flags of a note.
const (
	runMask    = 1<<5 - 1 // answers 304 in a row, at most 31
	doubtShift = 5        // 2 bits: whole answers in a row that were changes after 304s
	hasCopy    = 1 << 7
)

// note is what is kept with a URL. The zero value is that of a URL never read.
type note struct {
	page  recrawl.Page
	run   byte // answers 304 in a row
	doubt byte // 0 to 3: how little its 304s are believed
	copied
}

// copied is what the copy looked like.
type copied struct {
	has    bool
	key    uint16 // of the hasher; another one's cannot be compared
	text   [8]byte
	sketch []byte // a byte of each value; nil if there is none
}

// parseNote reads a note. ok is false for what is none: the URL is new then.
func parseNote(b []byte) (n note, ok bool) {
	if len(b) != noteSize && len(b) != noteSize+sketchSize || b[0] != noteVersion {
		return note{}, false
	}
	n.run, n.doubt, n.has = b[1]&runMask, b[1]>>doubtShift&3, b[1]&hasCopy != 0
	n.key = binary.BigEndian.Uint16(b[2:])
	if n.page.UnmarshalBinary(b[4:16]) != nil {
		return note{}, false
	}
	copy(n.text[:], b[16:24])
	if len(b) > noteSize {
		n.sketch = b[noteSize:]
	}
	return n, true
}

func (n note) bytes() []byte {
	b := make([]byte, 0, noteSize+len(n.sketch))
	flags := min(n.run, runMask) | min(n.doubt, 3)<<doubtShift
	if n.has {
		flags |= hasCopy
	}
	b = binary.BigEndian.AppendUint16(append(b, noteVersion, flags), n.key)
	b, _ = n.page.AppendBinary(b)
	return append(append(b, n.text[:]...), n.sketch...)
}

// copyOf is what is kept of a page's content.
func copyOf(p *near.Page, key uint16, sketch bool) copied {
	c := copied{has: true, key: key, text: [8]byte(p.Text[:8])}
	if sketch && p.Words >= near.MinWords {
		c.sketch = make([]byte, sketchSize)
		for i, x := range p.Sketch {
			c.sketch[i] = byte(x)
		}
	}
	return c
}

// change is how much of a page is other than it was before, 0 to 1: near.Page.Change,
// of what is kept. Of pages without a sketch any change is 1. A byte of each value is
// the same by chance once in 256.
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
