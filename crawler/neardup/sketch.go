// This file computes the few bytes by which pages are compared: fingerprints, which are equal or
// not, and sketches, which estimate how much is the same.

package neardup

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"

	"github.com/dchest/siphash"
)

// bins is the number of values in a sketch: Broder's 84.
const bins = 84

// Print is a 128-bit fingerprint: equal content has the same one. The odds that any two of n
// different pages collide are about n²/2^129. It is keyed, so that collisions cannot be
// constructed.
type Print [16]byte

// Sketch is a sample of a page's shingles, by which the resemblance of two pages is estimated
// (min-wise hashing: Broder, "On the resemblance and containment of documents", 1997; in one
// permutation: Li, Owen and Zhang 2012, with Shrivastava's densification of 2017). Only sketches of
// the same Hasher are comparable.
type Sketch [bins]uint16

// Resemblance estimates the share of the shingles of two pages that both have, from 0 to 1. Its
// standard error is about sqrt(r(1-r)/84): 0.03 at 0.9, 0.05 at 0.5.
func (s *Sketch) Resemblance(other *Sketch) float64 {
	same := 0
	for i := range s {
		if s[i] == other[i] {
			same++
		}
	}
	return float64(same) / bins
}

// Page is the stored form of a page's content.
type Page struct {
	// Bytes is the fingerprint of the page as it came.
	Bytes Print
	// Text is the fingerprint of its words. It does not depend on markup, letter case, punctuation,
	// white space and, unless Options.KeepNumbers is set, numbers.
	Text Print
	// Words is how many there are.
	Words int
	// Sketch is zero if there are fewer than MinWords.
	Sketch Sketch
	// Links is a fingerprint of the page's links, set by the caller; zero if unknown.
	Links uint64
}

// MinWords is the minimum number of words of a page that can be near another. Two shorter pages
// match only if all of their words are the same.
const MinWords = 32

// Near reports whether the texts of two pages are the same, or their resemblance is at least the
// threshold; it also returns the resemblance as far as it is known.
func (p *Page) Near(other *Page, threshold float64) (bool, float64) {
	if p.Text == other.Text {
		return true, 1
	}
	if p.Words < MinWords || other.Words < MinWords {
		return false, 0
	}
	r := p.Sketch.Resemblance(&other.Sketch)
	return r >= threshold, r
}

// Change returns how much of a page's content differs from before, from 0, if only markup and
// similar parts differ, to 1. A change of few words among many is small; for a page with less than
// MinWords any change is 1.
func (p *Page) Change(before *Page) float64 {
	if p.Text == before.Text {
		return 0
	}
	_, r := p.Near(before, 1)
	return 1 - r
}

// Hasher makes Pages. It is immutable and safe for concurrent use.
type Hasher struct {
	k0, k1      uint64
	shingle     int
	keepNumbers bool
}

// NewHasher returns a Hasher with a key, which should be random and secret: only Pages made with
// the same key and Options can be compared. Only the Options Shingle and KeepNumbers are used.
func NewHasher(key [16]byte, o Options) *Hasher {
	o = o.withDefaults()
	return &Hasher{binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:]), o.Shingle, o.KeepNumbers}
}

// NewKey returns a random key.
func NewKey() (key [16]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
}

// HTML returns the Page of an HTML document: its words are those of [Text].
func (h *Hasher) HTML(body []byte, contentType string) Page {
	p := h.Text(mainText(body, contentType))
	p.Bytes = h.print(body)
	return p
}

// Text returns the Page of plain text in UTF-8.
func (h *Hasher) Text(text []byte) Page {
	p := Page{Bytes: h.print(text)}
	var s shingler
	s.init(h.shingle)
	all := siphash.New128(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, h.k0), h.k1))
	var buf [8]byte
	words(text, h.keepNumbers, func(w []byte) {
		x := siphash.Hash(h.k0, h.k1, w)
		binary.LittleEndian.PutUint64(buf[:], x)
		_, _ = all.Write(buf[:])
		p.Words++
		s.add(x)
	})
	all.Sum(p.Text[:0])
	if p.Words >= MinWords {
		p.Sketch = s.sketch()
	}
	return p
}

// Other returns the Page of a body without text: only its bytes are compared.
func (h *Hasher) Other(body []byte) Page {
	b := h.print(body)
	return Page{Bytes: b, Text: b}
}

func (h *Hasher) print(b []byte) (p Print) {
	x, y := siphash.Hash128(h.k0, h.k1, b)
	binary.LittleEndian.PutUint64(p[:8], x)
	binary.LittleEndian.PutUint64(p[8:], y)
	return p
}

// shingler keeps the least hash of the shingles, the runs of n words, in each bin.
type shingler struct {
	n     int
	ring  [maxShingle]uint64
	count int
	least [bins]uint64
}

// maxShingle is the maximum number of words in a shingle.
const maxShingle = 16

func (s *shingler) init(n int) {
	s.n = n
	for i := range s.least {
		s.least[i] = 1<<64 - 1
	}
}

func (s *shingler) add(word uint64) {
	s.ring[s.count%s.n] = word
	s.count++
	if s.count < s.n {
		return
	}
	var x uint64
	for i := range s.n {
		x = mix(x ^ s.ring[(s.count+i)%s.n])
	}
	bin, rest := bits.Mul64(x, bins)
	s.least[bin] = min(s.least[bin], rest)
}

// sketch fills the bins that no shingle fell into from others that two pages choose
// alike, and cuts the values.
func (s *shingler) sketch() (k Sketch) {
	for i := range k {
		from := uint64(i)
		for try := uint64(1); s.least[from] == 1<<64-1; try++ {
			from, _ = bits.Mul64(mix(uint64(i)<<32|try), bins)
		}
		k[i] = uint16(mix(s.least[from]^uint64(i)) >> 48)
	}
	return k
}

// mix is the finalizer of SplitMix64: each bit of x changes half of the result's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
