// This file writes records into blocks.

package spill

import (
	"fmt"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

// Pack writes the records of runs into new blocks. After an error nothing was added; the call may
// be repeated.
func (s *Store) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
	if err := s.enter(); err != nil {
		return nil, fmt.Errorf("spill: pack: %w", err)
	}
	defer s.leave()
	s.pack.Lock()
	defer s.pack.Unlock()
	if err := checkRuns(runs); err != nil {
		return nil, fmt.Errorf("spill: pack: %w", err)
	}
	p := packer{s: s, gen: s.generation(gen), kind: keys.KindBlock, w: &s.writer}
	parts, err := p.runs(runs)
	if err != nil {
		p.abandon()
		return nil, fmt.Errorf("spill: pack: %w", err)
	}
	return parts, nil
}

func checkRuns(runs []storage.Run) error {
	for i := range runs {
		if n := len(runs[i].Host); n == 0 || n > 255 {
			return fmt.Errorf("run %d has a host key of %d bytes; want 1 to 255", i, n)
		}
		for j := range runs[i].Records {
			if n := len(runs[i].Records[j].Body); n > blocks.MaxBody {
				return fmt.Errorf("run %d has a body of %d bytes; want at most %d", i, n, blocks.MaxBody)
			}
		}
	}
	return nil
}

// packer is one call of Pack.
type packer struct {
	s     *Store
	gen   uint32
	w     *blocks.Writer
	kind  keys.Kind // of the blocks
	block uint32    // number of the block being filled; 0: none
	batch kv.Batch
	keys  [][]byte // of all blocks of this call
}

func (p *packer) runs(runs []storage.Run) ([][]storage.Part, error) {
	p.w.Reset()
	parts := make([][]storage.Part, len(runs))
	for i := range runs {
		r := &runs[i]
		parts[i] = make([]storage.Part, 0, (len(r.Records)+storage.MaxPart-1)/storage.MaxPart)
		for rest := r.Records; len(rest) > 0; {
			if p.block == 0 {
				if err := p.begin(); err != nil {
					return nil, err
				}
			}
			first := p.w.Count
			n := p.w.Part(r.Queue, rest)
			parts[i] = append(parts[i], storage.Part{Block: p.block, First: uint16(first), Count: uint8(n)})
			rest = rest[n:]
			if p.w.Full() {
				if err := p.end(); err != nil {
					return nil, err
				}
			}
		}
	}
	if p.block != 0 {
		if err := p.end(); err != nil {
			return nil, err
		}
	}
	return parts, p.flush()
}

// begin takes the number of the next block. Numbers are never returned.
func (p *packer) begin() error {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == 1<<32-1 {
		return fmt.Errorf("all %d block numbers are used", s.next)
	}
	if n := len(s.spans); n == 0 || s.spans[n-1].gen != p.gen || s.spans[n-1].kind != p.kind {
		s.spans = append(s.spans, span{first: s.next, gen: p.gen, kind: p.kind})
	}
	s.spans[len(s.spans)-1].live++
	p.block = s.next
	s.next++
	return nil
}

func (p *packer) end() error {
	key := keys.Block(p.gen, p.block)
	p.set(key, p.w.Value(key))
	p.w.Reset()
	return p.ended()
}

// set adds a value of the block being filled.
func (p *packer) set(key, v []byte) {
	p.keys = append(p.keys, key)
	p.batch.Set(key, v)
}

// ended notes that all values of a block are set.
func (p *packer) ended() error {
	p.block = 0
	if p.batch.Bytes < chunkBytes && p.s.db.Fits(&p.batch) {
		return nil
	}
	return p.flush()
}

func (p *packer) flush() error {
	err := p.s.putFitting(&p.batch, false)
	if err == nil {
		for _, o := range p.batch.Ops {
			if block, ok := keys.Number(o.Key); ok {
				p.s.located(block, o.Key)
			}
		}
	}
	p.batch = kv.Batch{}
	return err
}

// abandon sees to it that no block of the call becomes part of the state: now if
// possible, before the next checkpoint in any case.
func (p *packer) abandon() {
	s := p.s
	s.mu.Lock()
	s.orphans = append(s.orphans, p.keys...)
	s.mu.Unlock()
	if err := s.dropOrphans(); err != nil {
		s.opts.Logger.Warn("spill: blocks of a failed pack not yet deleted", "error", err)
	}
}

func (s *Store) dropOrphans() error {
	s.mu.Lock()
	keys := s.orphans
	s.orphans = nil
	s.mu.Unlock()
	var b kv.Batch
	for _, k := range keys {
		b.Delete(k)
	}
	err := s.putChunks(&b, false)
	if err != nil {
		s.mu.Lock()
		s.orphans = append(s.orphans, keys...)
		s.mu.Unlock()
	}
	return err
}
