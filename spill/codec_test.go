// This file pins the stored state and feeds the readers of small values with noise.

package spill

import (
	"encoding/hex"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/journal"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/stretchr/testify/assert"
)

// A change of these bytes needs a new Version and a way to read the old ones.
func TestStateIsPinned(t *testing.T) {
	const golden = "019b34777f05ac020409020701e80701020304ac02000200000005"
	v := state{5, 300, 4, 9, []marks.Ref{{ID: 7, Level: 1, Count: 1000, Sum: 0x01020304}, {ID: 300, Count: 2, Sum: 5}}}.value(keys.Prefix(keys.Fixed, keys.KindState))
	assert.Equal(t, golden, hex.EncodeToString(v))
}

func FuzzValues(f *testing.F) {
	g := blocks.Segment{}
	g.Set(3, []byte{1})
	f.Add(g.Value(nil)[wire.SealLen:])
	f.Add(s2.Encode(nil, []byte{0, 1, 2}))
	f.Fuzz(func(t *testing.T, content []byte) {
		v := append(wire.AppendSeal(nil), content...)
		wire.CloseSeal(nil, v)
		_, _ = blocks.ReadSegment(0, nil, v)
		_, _ = readState(nil, v)
		_, _, _, _ = journal.ReadHead(nil, nil, v)
	})
}
