// This file runs what the interface allows to run side by side.

package spill_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommitPackAndLoadSideBySide(t *testing.T) {
	s := open(t, t.TempDir(), small)
	require.NoError(t, s.Recover(t.Context(), newReplay()))
	run := func(gen, host, n int) storage.Run {
		r := storage.Run{Queue: storage.Queue{Host: fmt.Sprint("h", host), Priority: 1}}
		for i := range n {
			r.Records = append(r.Records, storage.Record{Seq: uint64(gen*1_000_000 + host*1000 + i), Body: fmt.Append(nil, "body", i)})
		}
		return r
	}
	var side sync.WaitGroup
	packed := make(chan []storage.Part, 1000)
	side.Go(func() { // packs generation after generation, and hands the parts on
		defer close(packed)
		for gen := 1; gen <= 20; gen++ {
			var runs []storage.Run
			for h := range 50 {
				runs = append(runs, run(gen, h, 1+h))
			}
			parts, err := s.Pack(uint32(gen), runs)
			if !assert.NoError(t, err) {
				return
			}
			for _, ps := range parts {
				packed <- ps
			}
		}
	})
	for range 2 {
		side.Go(func() {
			for ps := range packed {
				for _, p := range ps {
					n := 0
					assert.NoError(t, s.Load(p, 1<<p.Count-1, func(int, storage.Record) { n++ }))
					assert.Equal(t, int(p.Count), n)
				}
			}
		})
	}
	for id := uint64(1); id <= 300; id++ {
		q := storage.Queue{Host: "log", Priority: 1}
		require.NoError(t, s.Commit(&storage.Batch{ID: id, Admit: []storage.Admission{{Queue: q, Record: storage.Record{Seq: id, Body: make([]byte, 100)}}}}))
	}
	side.Wait()
	require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: 20, Through: 100}))
	require.NoError(t, s.Release())
	r := newReplay()
	require.NoError(t, s.Recover(t.Context(), r))
	require.Len(t, r.batches, 200)
	require.NotEmpty(t, r.parts)
	for _, p := range r.parts { // generations that were passed over are gone
		require.NoError(t, s.Load(p, 1, func(_ int, rec storage.Record) { require.EqualValues(t, 20, rec.Seq/1_000_000) }))
	}
}
