// This file writes timed blocks, whose records are not due yet, and reads them in order.

package spill

import (
	"fmt"
	"sync"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/storage"
)

// PackTimed writes records, which are sorted by Due, into timed blocks. After an error nothing was
// added; the call may be repeated.
func (s *Store) PackTimed(gen uint32, records []storage.TimedRecord) ([]storage.TimedBlock, error) {
	if err := s.enter(); err != nil {
		return nil, fmt.Errorf("spill: pack timed: %w", err)
	}
	defer s.leave()
	s.pack.Lock()
	defer s.pack.Unlock()
	if err := blocks.CheckTimed(records); err != nil {
		return nil, fmt.Errorf("spill: pack timed: %w", err)
	}
	p := packer{s: s, gen: s.generation(gen), kind: keys.KindTimed}
	made, err := p.timed(records)
	if err != nil {
		p.abandon()
		return nil, fmt.Errorf("spill: pack timed: %w", err)
	}
	return made, nil
}

func (p *packer) timed(records []storage.TimedRecord) ([]storage.TimedBlock, error) {
	var made []storage.TimedBlock
	var w blocks.TimedWriter
	for len(records) > 0 {
		n := w.Fill(records)
		if err := p.begin(); err != nil {
			return nil, err
		}
		key, head := keys.Timed(p.gen, p.block), keys.Head(p.gen, p.block)
		v := w.Value(key)
		b := storage.TimedBlock{Block: p.block, Count: n, Due: records[0].Due}
		for i := range n {
			b.Priority = max(b.Priority, records[i].Priority)
		}
		made = append(made, b)
		p.set(key, v)
		p.set(head, blocks.TimedHead(head, b))
		if err := p.ended(); err != nil {
			return nil, err
		}
		records = records[n:]
	}
	return made, p.flush()
}

// buffers holds memory for decompressed blocks that are read once.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// LoadTimed reads a timed block. It may be called from any number of goroutines.
func (s *Store) LoadTimed(block uint32, from int, fn func(pos int, r storage.TimedRecord) bool) error {
	return s.during("load timed", func() error {
		key, ok := s.keyOf(block)
		if !ok || keys.Kind(key[keys.HeadLen-1]) != keys.KindTimed {
			return keys.Corrupt(key, errNoBlock)
		}
		return must(s.db, key, errNoBlock, func(value []byte) error {
			buf := buffers.Get().(*[]byte)
			defer buffers.Put(buf)
			raw, err := blocks.OpenTimed(*buf, key, value)
			if err != nil {
				return err
			}
			if cap(raw) <= 16*blocks.Target {
				*buf = raw[:0]
			}
			return blocks.ReadTimed(raw, true, func(pos int, r storage.TimedRecord) bool { return pos < from || fn(pos, r) })
		})
	})
}
