package journal

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sampleBatch() *storage.Batch {
	q := storage.Queue{Host: "a.example", Crawl: 3, Priority: 2}
	return &storage.Batch{
		Time: 1_700_000_000_000,
		Admit: []storage.Admission{
			{Queue: q, Record: storage.Record{Seq: 7, Body: []byte("one")}, Mark: storage.Mark{1, 2, 3}, HasMark: true},
			{Queue: q, Record: storage.Record{Seq: 9, Due: -5, Body: []byte{}}},
		},
		Finish: []storage.Completion{{Seq: 4, Block: 6, Pos: 300}, {Seq: 1<<48 - 1}},
		Rows:   []storage.Row{{Key: "k", Value: []byte("v")}, {Key: "gone"}, {Key: "empty", Value: []byte{}}},
		Drop:   []uint32{6, 2, math.MaxUint32},
		Marks:  []storage.Mark{{4, 5, 6}},
	}
}

// A change of these bytes needs a new Version and a way to read the old ones.
func TestFormatIsPinned(t *testing.T) {
	const golden = "01050bebd700065df05c80a0abfef962020409612e6578616d706c6503020e036f6e6503040900010203000000000000000000020906ac02f6ffffffffff7f0003016b027604676f6e650005656d70747901030c07faffffff1f01040506000000000000000000"
	pieces, err := AppendPieces(nil, 10, 7, 6, AppendBatch(nil, sampleBatch()))
	require.NoError(t, err)
	require.Len(t, pieces, 1)
	assert.Equal(t, golden, hex.EncodeToString(pieces[0].Value))
}

func TestBatchRoundTrip(t *testing.T) {
	var b storage.Batch
	require.NoError(t, ReadBatch(&b, AppendBatch(nil, sampleBatch())))
	assert.Equal(t, sampleBatch(), &b)
}

func TestLargeBatchRoundTrip(t *testing.T) {
	want := &storage.Batch{Admit: make([]storage.Admission, 3)}
	for i := range want.Admit {
		want.Admit[i] = storage.Admission{Queue: storage.Queue{Host: "h"}, Record: storage.Record{Seq: uint64(i), Body: bytes.Repeat([]byte{byte(i)}, pieceRaw-1)}}
	}
	pieces, err := AppendPieces(nil, 1, 1, 0, AppendBatch(nil, want))
	require.NoError(t, err)
	require.Len(t, pieces, 4)
	raw, more, _, err := ReadHead(nil, pieces[0].Key, pieces[0].Value)
	require.NoError(t, err)
	require.Equal(t, 3, more)
	for _, p := range pieces[1:] {
		raw, err = ReadPiece(raw, p.Key, p.Value)
		require.NoError(t, err)
	}
	var got storage.Batch
	require.NoError(t, ReadBatch(&got, raw))
	assert.Equal(t, want.Admit, got.Admit)
}

func FuzzBatch(f *testing.F) {
	f.Add(AppendBatch(nil, sampleBatch()))
	f.Add([]byte{0, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b storage.Batch
		if ReadBatch(&b, raw) != nil {
			return
		}
		// An admission takes three bytes, a row or a completion two.
		require.LessOrEqual(t, 2*(len(b.Admit)+len(b.Finish)+len(b.Rows))+len(b.Drop), len(raw))
		var again storage.Batch
		require.NoError(t, ReadBatch(&again, AppendBatch(nil, &b)))
		require.Equal(t, b, again)
	})
}
