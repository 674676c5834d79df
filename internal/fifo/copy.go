// This file copies records out of a store, whose memory they are in only for the moment.

package fifo

import (
	"sync"

	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
)

// Copy is what was read of a part. Make one with NewCopy.
type Copy struct {
	Records []Loaded
	Add     func(i int, r storage.Record) // appends a copy of a record; for storage.Spill
	bodies  []byte                        // of the records; it may have become another one meanwhile
}

// maxBodies is how many bytes of bodies are kept for the next Copy.
const maxBodies = 64 << 10

var copies sync.Pool // of *Copy

// NewCopy returns an empty Copy.
func NewCopy() *Copy {
	if c, ok := copies.Get().(*Copy); ok {
		return c
	}
	c := &Copy{}
	c.Add = func(i int, r storage.Record) {
		at := len(c.bodies)
		c.bodies = append(c.bodies, r.Body...)
		c.Records = append(c.Records, Loaded{Pos: i, Seq: r.Seq, Body: c.bodies[at:len(c.bodies):len(c.bodies)]})
	}
	return c
}

// Free lets the Copy be used again. Its records are not valid any more.
func (c *Copy) Free() {
	clear(c.Records)
	c.Records, c.bodies = c.Records[:0], c.bodies[:0]
	if cap(c.bodies) <= maxBodies {
		copies.Put(c)
	}
}

// Check returns a CorruptError if a body is malformed.
func (c *Copy) Check() error {
	for _, r := range c.Records {
		if _, err := record.Decode(r.Body); err != nil {
			return &storage.CorruptError{Err: err}
		}
	}
	return nil
}
