// This file has promises that other tests did not notice when they were broken on
// purpose: see proof/mutate.

package spill_test

import (
	"math/rand/v2"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// A batch of several values is there as a whole or not at all, whenever the process
// dies while it is written.
func TestDeathWhileALargeBatchIsWritten(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	require.NoError(t, mach.Store.Recover(t.Context(), newReplay()))
	b := &storage.Batch{ID: 1}
	random := rand.NewChaCha8([32]byte{})
	for i := range 3 {
		body := make([]byte, 4<<20-1)
		_, _ = random.Read(body)
		b.Admit = append(b.Admit, storage.Admission{Queue: storage.Queue{Host: "h", Priority: 1}, Record: storage.Record{Seq: uint64(i + 1), Body: body}})
	}
	var images []*spilltest.Machine
	var snap func()
	snap = func() {
		images = append(images, mach.Kill(t))
		mach.Faults.Before(spilltest.Write, 1, snap)
	}
	mach.Faults.Before(spilltest.Write, 1, snap)
	require.NoError(t, mach.Store.Commit(b))
	require.Greater(t, len(images), 2, "it is written in several steps")
	for _, m := range images {
		r := newReplay()
		require.NoError(t, m.Store.Recover(t.Context(), r))
		require.Empty(t, r.batches)
	}
	r := newReplay()
	require.NoError(t, mach.Kill(t).Store.Recover(t.Context(), r))
	require.Len(t, r.batches, 1)
	require.Len(t, r.batches[0].Admit, 3)
}

// Load gives those records of a part that are wanted, and no others.
func TestLoadGivesWhatIsWanted(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	require.NoError(t, mach.Store.Recover(t.Context(), newReplay()))
	run := storage.Run{Queue: storage.Queue{Host: "h", Priority: 1}}
	for i := range 5 {
		run.Records = append(run.Records, storage.Record{Seq: uint64(i + 1), Body: []byte{byte(i)}})
	}
	parts, err := mach.Store.Pack(1, []storage.Run{run})
	require.NoError(t, err)
	require.Len(t, parts[0], 1)
	for want := range uint32(1 << 5) {
		var got uint32
		require.NoError(t, mach.Store.Load(parts[0][0], want, func(i int, r storage.Record) {
			got |= 1 << i
			require.Equal(t, storage.Record{Seq: uint64(i + 1), Body: []byte{byte(i)}}, r)
		}))
		require.Equal(t, want, got)
	}
}
