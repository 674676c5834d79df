// This file pins the stored formats and feeds them damage.

package spill

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
)

func sampleBatch() *frontier.Batch {
	q := frontier.Queue{Host: "a.example", Crawl: 3, Priority: 2}
	return &frontier.Batch{
		Time: 1_700_000_000_000,
		Admit: []frontier.Admission{
			{Queue: q, Record: frontier.Record{Seq: 7, Body: []byte("one")}, Mark: frontier.Mark{1, 2, 3}, HasMark: true},
			{Queue: q, Record: frontier.Record{Seq: 9, Due: -5, Body: []byte{}}},
		},
		Finish: []frontier.Completion{{Seq: 4, Block: 6, Pos: 300}, {Seq: 1<<48 - 1}},
		Rows:   []frontier.Row{{Key: "k", Value: []byte("v")}, {Key: "gone"}, {Key: "empty", Value: []byte{}}},
		Drop:   []uint32{6, 2, math.MaxUint32},
		Marks:  []frontier.Mark{{4, 5, 6}},
	}
}

func sampleBlock(key []byte) []byte {
	var w blockWriter
	w.part(frontier.Queue{Host: "a.example", Crawl: 3, Priority: 2},
		[]frontier.Record{{Seq: 7, Body: []byte("one")}, {Seq: 9, Due: 12, Body: []byte("two")}})
	w.part(frontier.Queue{Host: "a.example", Crawl: 3, Priority: 2}, []frontier.Record{{Seq: 11, Due: 99, Body: []byte("3")}})
	w.part(frontier.Queue{Host: "b", Priority: 1}, []frontier.Record{{Seq: 1<<48 - 1}})
	return w.value(key)
}

func sampleTimed(key []byte) []byte {
	var w timedWriter
	a, b := frontier.Queue{Host: "a.example", Crawl: 3, Priority: 2}, frontier.Queue{Host: "b", Priority: 1}
	w.fill([]frontier.TimedRecord{
		{Queue: a, Record: frontier.Record{Seq: 9, Due: -5, Body: []byte("one")}},
		{Queue: b, Record: frontier.Record{Seq: 7, Due: 12}},
		{Queue: a, Record: frontier.Record{Seq: 1<<48 - 1, Due: 12, Body: []byte("two")}},
	})
	return w.value(key)
}

var sampleTimedBlock = frontier.TimedBlock{Block: 5, Count: 3, Due: -5, Priority: 2}

// A change of these bytes needs a new Version and a way to read the old ones.
func TestFormatIsPinned(t *testing.T) {
	at := func(v []byte) string { return hex.EncodeToString(v) }
	assert.Equal(t, "0000000a4200000005", at(blockKey(10, 5)))
	assert.Equal(t, "0000000a4c00000000000000070002", at(logKey(10, 7, 2)))
	assert.Equal(t, "ffffffff526b", at(rowKey("k")))

	key := blockKey(10, 5)
	assert.Equal(t, goldenBlock, at(sampleBlock(key)), "block")
	assert.Equal(t, "0000000a5400000005", at(timedKey(10, 5)))
	assert.Equal(t, "0000000a4800000005", at(timedHeadKey(10, 5)))
	assert.Equal(t, goldenTimed, at(sampleTimed(timedKey(10, 5))), "timed block")
	assert.Equal(t, goldenHead, at(timedHead(timedHeadKey(10, 5), sampleTimedBlock)), "head")

	pieces, err := appendPieces(nil, 10, 7, 6, appendBatch(nil, sampleBatch()))
	require.NoError(t, err)
	require.Len(t, pieces, 1)
	assert.Equal(t, goldenBatch, at(pieces[0].value), "batch")

	g := segment{}
	g.set(3, []byte{1})
	g.set(3, []byte{2, 4})
	g.set(9, []byte{8})
	assert.Equal(t, goldenDead, at(g.value(deadKey(10, 0))), "dead")
	assert.Equal(t, goldenState, at(state{5, 300, 4, 9, []runRef{{7, 1, 1000, 0x01020304}, {300, 0, 2, 5}}}.value(prefixKey(fixed, kindState))), "state")
}

func TestBatchRoundTrip(t *testing.T) {
	var b frontier.Batch
	require.NoError(t, readBatch(&b, appendBatch(nil, sampleBatch())))
	assert.Equal(t, sampleBatch(), &b)
}

func TestLargeBatchRoundTrip(t *testing.T) {
	want := &frontier.Batch{Admit: make([]frontier.Admission, 3)}
	for i := range want.Admit {
		want.Admit[i] = frontier.Admission{Queue: frontier.Queue{Host: "h"}, Record: frontier.Record{Seq: uint64(i), Body: bytes.Repeat([]byte{byte(i)}, pieceRaw-1)}}
	}
	pieces, err := appendPieces(nil, 1, 1, 0, appendBatch(nil, want))
	require.NoError(t, err)
	require.Len(t, pieces, 4)
	raw, more, _, err := readHead(nil, pieces[0].key, pieces[0].value)
	require.NoError(t, err)
	require.Equal(t, 3, more)
	for _, p := range pieces[1:] {
		raw, err = readPiece(raw, p.key, p.value)
		require.NoError(t, err)
	}
	var got frontier.Batch
	require.NoError(t, readBatch(&got, raw))
	assert.Equal(t, want.Admit, got.Admit)
}

func TestBlockRoundTrip(t *testing.T) {
	key := blockKey(1, 1)
	rapid.Check(t, func(rt *rapid.T) {
		type part struct {
			q  frontier.Queue
			rs []frontier.Record
		}
		var w blockWriter
		var want []part
		for range rapid.IntRange(1, 12).Draw(rt, "parts") {
			var p part
			p.q.Host = strings.Repeat(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "host"), rapid.IntRange(1, 255).Draw(rt, "len"))
			p.q.Crawl, p.q.Priority = rapid.Uint32().Draw(rt, "crawl"), rapid.Uint8().Draw(rt, "priority")
			for range rapid.IntRange(1, 40).Draw(rt, "records") {
				p.rs = append(p.rs, frontier.Record{Seq: rapid.Uint64Max(1<<48-1).Draw(rt, "seq"), Due: rapid.Int64().Draw(rt, "due"), Body: []byte(rapid.String().Draw(rt, "body"))})
			}
			p.rs = p.rs[:w.part(p.q, p.rs)]
			want = append(want, p)
			if w.full() {
				break
			}
		}
		dir, body, err := splitBlock(key, w.value(key))
		require.NoError(rt, err)
		raw, err := inflate(nil, body, blockRawLimit)
		require.NoError(rt, err)
		var got []part
		require.NoError(rt, readDirectory(dir, nil, func(e partEntry) error {
			p := part{q: e.queue}
			err := readRecords(raw, e, math.MaxUint32, func(_ int, r frontier.Record) error { p.rs = append(p.rs, r); return nil })
			got = append(got, p)
			return err
		}))
		require.Equal(rt, want, got)
	})
}

// walkTimed reads a timed block from its stored value.
func walkTimed(key, v []byte, fn func(pos int, r frontier.TimedRecord) bool) error {
	raw, err := openTimed(nil, key, v)
	if err != nil {
		return err
	}
	return readTimed(raw, true, fn)
}

func TestTimedRoundTrip(t *testing.T) {
	key := timedKey(1, 1)
	rapid.Check(t, func(rt *rapid.T) {
		var want []frontier.TimedRecord
		due := rapid.Int64Range(-1<<60, 1<<60).Draw(rt, "due")
		for range rapid.IntRange(1, 700).Draw(rt, "records") {
			due += rapid.Int64Range(0, 1<<40).Draw(rt, "later")
			want = append(want, frontier.TimedRecord{
				Queue: frontier.Queue{
					Host:     strings.Repeat(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "host"), rapid.IntRange(1, 255).Draw(rt, "len")),
					Crawl:    rapid.Uint32Max(2).Draw(rt, "crawl"),
					Priority: rapid.Uint8Range(1, 3).Draw(rt, "priority"),
				},
				Record: frontier.Record{Seq: rapid.Uint64Max(1<<48-1).Draw(rt, "seq"), Due: due, Body: []byte(rapid.String().Draw(rt, "body"))},
			})
		}
		var w timedWriter
		n := w.fill(want)
		require.LessOrEqual(rt, n, frontier.MaxTimed)
		var got []frontier.TimedRecord
		require.NoError(rt, walkTimed(key, w.value(key), func(pos int, r frontier.TimedRecord) bool {
			require.Equal(rt, len(got), pos)
			r.Body = append([]byte{}, r.Body...)
			got = append(got, r)
			return true
		}))
		require.Equal(rt, want[:n], got)
	})
}

func FuzzTimed(f *testing.F) {
	f.Add(sampleTimed(nil)[sealLen:])
	f.Add(s2.Encode(nil, []byte{0, 1, 'a', 0, 1, 0, 0, 0, 1, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, content []byte) {
		v := append(appendSeal(nil), content...)
		closeSeal(nil, v)
		n := 0
		_ = walkTimed(nil, v, func(pos int, r frontier.TimedRecord) bool {
			n++
			return r.Host != ""
		})
		require.LessOrEqual(t, n, frontier.MaxTimed)
		if b, err := readTimedHead(timedHeadKey(1, 1), v); err == nil {
			require.LessOrEqual(t, b.Count, frontier.MaxTimed)
		}
	})
}

// No flipped bit and no lost byte of a stored value goes unnoticed.
func TestDamageIsFound(t *testing.T) {
	key := blockKey(1, 1)
	v := sampleBlock(key)
	for i := range v {
		for bit := range 8 {
			bad := bytes.Clone(v)
			bad[i] ^= 1 << bit
			_, _, err := splitBlock(key, bad)
			require.Error(t, err, "byte %d bit %d", i, bit)
		}
		_, _, err := splitBlock(key, v[:i])
		require.Error(t, err, "cut at %d", i)
	}
	_, _, err := splitBlock(blockKey(1, 2), v)
	require.ErrorIs(t, err, errChecksum, "under another key")

	all := func(int, frontier.TimedRecord) bool { return true }
	key = timedKey(1, 1)
	v = sampleTimed(key)
	require.NoError(t, walkTimed(key, v, all))
	for i := range v {
		for bit := range 8 {
			bad := bytes.Clone(v)
			bad[i] ^= 1 << bit
			require.Error(t, walkTimed(key, bad, all), "byte %d bit %d", i, bit)
		}
		require.Error(t, walkTimed(key, v[:i], all), "cut at %d", i)
	}
}

func FuzzBlock(f *testing.F) {
	f.Add(sampleBlock(nil)[sealLen:])
	f.Add([]byte{4, 0, 33, 1, 'a', 0, 0, 0})
	f.Fuzz(func(t *testing.T, content []byte) {
		s := scanner{b: content}
		dir := s.bytes()
		raw, err := inflate(nil, s.b, blockRawLimit)
		if err != nil {
			raw = nil
		}
		require.LessOrEqual(t, len(raw), blockRawLimit)
		_ = readDirectory(dir, nil, func(e partEntry) error {
			n := 0
			err := readRecords(raw, e, math.MaxUint32, func(i int, r frontier.Record) error { n++; return nil })
			if err == nil {
				require.Equal(t, int(e.count), n)
			}
			return nil
		})
	})
}

func FuzzBatch(f *testing.F) {
	f.Add(appendBatch(nil, sampleBatch()))
	f.Add([]byte{0, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b frontier.Batch
		if readBatch(&b, raw) != nil {
			return
		}
		// An admission takes three bytes, a row or a completion two.
		require.LessOrEqual(t, 2*(len(b.Admit)+len(b.Finish)+len(b.Rows))+len(b.Drop), len(raw))
		var again frontier.Batch
		require.NoError(t, readBatch(&again, appendBatch(nil, &b)))
		require.Equal(t, b, again)
	})
}

// FuzzKeys decodes any key, and values under it: what is understood names the key
// again, and nothing is read under another key.
func FuzzKeys(f *testing.F) {
	for _, k := range [][]byte{
		blockKey(1, 2), timedKey(1, 2), timedHeadKey(1, 2), deadKey(3, 4), logKey(1, 5, 6), rowKey("h:a.example"), prefixKey(fixed, kindState), {}, {1},
	} {
		f.Add(k, sampleBlock(blockKey(1, 2)))
		f.Add(k, sampleTimed(timedKey(1, 2)))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		_ = lifeOf(key)
		if n, ok := number(key); ok {
			again := binary.BigEndian.AppendUint32(bytes.Clone(key[:headLen]), n)
			require.Equal(t, key, again)
		}
		if id, piece, ok := logName(key); ok && kind(key[headLen-1]) == kindLog {
			require.Equal(t, key, logKey(binary.BigEndian.Uint32(key), id, piece))
		}
		_, _ = readTimedHead(key, value)
		_ = walkTimed(key, value, func(int, frontier.TimedRecord) bool { return true })
		if _, _, err := splitBlock(key, value); err == nil {
			_, _, err := splitBlock(append(bytes.Clone(key), 0), value)
			require.Error(t, err, "under another key")
		}
	})
}

func FuzzValues(f *testing.F) {
	g := segment{}
	g.set(3, []byte{1})
	f.Add(g.value(nil)[sealLen:])
	f.Add(s2.Encode(nil, []byte{0, 1, 2}))
	f.Fuzz(func(t *testing.T, content []byte) {
		v := append(appendSeal(nil), content...)
		closeSeal(nil, v)
		_, _ = readSegment(0, nil, v)
		_, _ = readState(nil, v)
		_, _, _, _ = readHead(nil, nil, v)
	})
}
