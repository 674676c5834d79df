package blocks

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func sampleBlock(key []byte) []byte {
	var w Writer
	w.Part(storage.Queue{Host: "a.example", Crawl: 3, Priority: 2},
		[]storage.Record{{Seq: 7, Body: []byte("one")}, {Seq: 9, Due: 12, Body: []byte("two")}})
	w.Part(storage.Queue{Host: "a.example", Crawl: 3, Priority: 2}, []storage.Record{{Seq: 11, Due: 99, Body: []byte("3")}})
	w.Part(storage.Queue{Host: "b", Priority: 1}, []storage.Record{{Seq: 1<<48 - 1}})
	return w.Value(key)
}

func sampleTimed(key []byte) []byte {
	var w TimedWriter
	a, b := storage.Queue{Host: "a.example", Crawl: 3, Priority: 2}, storage.Queue{Host: "b", Priority: 1}
	w.Fill([]storage.TimedRecord{
		{Queue: a, Record: storage.Record{Seq: 9, Due: -5, Body: []byte("one")}},
		{Queue: b, Record: storage.Record{Seq: 7, Due: 12}},
		{Queue: a, Record: storage.Record{Seq: 1<<48 - 1, Due: 12, Body: []byte("two")}},
	})
	return w.Value(key)
}

var sampleTimedBlock = storage.TimedBlock{Block: 5, Count: 3, Due: -5, Priority: 2}

// A change of these bytes needs a new Version and a way to read the old ones.
func TestFormatIsPinned(t *testing.T) {
	const (
		block = "011d760c8219000209612e6578616d706c6503020b01010500010162000108185c0e036f6e6509180374776f17c6010133feffffffffff7f00"
		timed = "01ea2dd671289c0009612e6578616d706c6503020912036f6e6500016200011103000100f0ffffffffff7f0374776f"
		head  = "01057d2243030902"
		dead  = "0135ba5536071803020304060108"
	)
	assert.Equal(t, block, hex.EncodeToString(sampleBlock(keys.Block(10, 5))))
	assert.Equal(t, timed, hex.EncodeToString(sampleTimed(keys.Timed(10, 5))))
	assert.Equal(t, head, hex.EncodeToString(TimedHead(keys.Head(10, 5), sampleTimedBlock)))
	g := Segment{}
	g.Set(3, []byte{1})
	g.Set(3, []byte{2, 4})
	g.Set(9, []byte{8})
	assert.Equal(t, dead, hex.EncodeToString(g.Value(keys.Dead(10, 0))))
}

func TestBlockRoundTrip(t *testing.T) {
	key := keys.Block(1, 1)
	rapid.Check(t, func(rt *rapid.T) {
		type part struct {
			q  storage.Queue
			rs []storage.Record
		}
		var w Writer
		var want []part
		for range rapid.IntRange(1, 12).Draw(rt, "parts") {
			var p part
			p.q.Host = strings.Repeat(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "host"), rapid.IntRange(1, 255).Draw(rt, "len"))
			p.q.Crawl, p.q.Priority = rapid.Uint32().Draw(rt, "crawl"), rapid.Uint8().Draw(rt, "priority")
			for range rapid.IntRange(1, 40).Draw(rt, "records") {
				p.rs = append(p.rs, storage.Record{Seq: rapid.Uint64Max(1<<48-1).Draw(rt, "seq"), Due: rapid.Int64().Draw(rt, "due"), Body: []byte(rapid.String().Draw(rt, "body"))})
			}
			p.rs = p.rs[:w.Part(p.q, p.rs)]
			want = append(want, p)
			if w.Full() {
				break
			}
		}
		dir, body, err := split(key, w.Value(key))
		require.NoError(rt, err)
		raw, err := wire.Inflate(nil, body, rawLimit)
		require.NoError(rt, err)
		var got []part
		require.NoError(rt, readDirectory(dir, nil, func(e entry) error {
			p := part{q: e.queue}
			err := readRecords(raw, e, math.MaxUint32, func(_ int, r storage.Record) error { p.rs = append(p.rs, r); return nil })
			got = append(got, p)
			return err
		}))
		require.Equal(rt, want, got)
	})
}

// walkTimed reads a timed block from its stored value.
func walkTimed(key, v []byte, fn func(pos int, r storage.TimedRecord) bool) error {
	raw, err := OpenTimed(nil, key, v)
	if err != nil {
		return err
	}
	return ReadTimed(raw, true, fn)
}

func TestTimedRoundTrip(t *testing.T) {
	key := keys.Timed(1, 1)
	rapid.Check(t, func(rt *rapid.T) {
		var want []storage.TimedRecord
		due := rapid.Int64Range(-1<<60, 1<<60).Draw(rt, "due")
		for range rapid.IntRange(1, 700).Draw(rt, "records") {
			due += rapid.Int64Range(0, 1<<40).Draw(rt, "later")
			want = append(want, storage.TimedRecord{
				Queue: storage.Queue{
					Host:     strings.Repeat(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "host"), rapid.IntRange(1, 255).Draw(rt, "len")),
					Crawl:    rapid.Uint32Max(2).Draw(rt, "crawl"),
					Priority: rapid.Uint8Range(1, 3).Draw(rt, "priority"),
				},
				Record: storage.Record{Seq: rapid.Uint64Max(1<<48-1).Draw(rt, "seq"), Due: due, Body: []byte(rapid.String().Draw(rt, "body"))},
			})
		}
		var w TimedWriter
		n := w.Fill(want)
		require.LessOrEqual(rt, n, storage.MaxTimed)
		var got []storage.TimedRecord
		require.NoError(rt, walkTimed(key, w.Value(key), func(pos int, r storage.TimedRecord) bool {
			require.Equal(rt, len(got), pos)
			r.Body = append([]byte{}, r.Body...)
			got = append(got, r)
			return true
		}))
		require.Equal(rt, want[:n], got)
	})
}

// No flipped bit and no lost byte of a stored value goes unnoticed.
func TestDamageIsFound(t *testing.T) {
	key := keys.Block(1, 1)
	v := sampleBlock(key)
	for i := range v {
		for bit := range 8 {
			bad := bytes.Clone(v)
			bad[i] ^= 1 << bit
			_, _, err := split(key, bad)
			require.Error(t, err, "byte %d bit %d", i, bit)
		}
		_, _, err := split(key, v[:i])
		require.Error(t, err, "cut at %d", i)
	}
	_, _, err := split(keys.Block(1, 2), v)
	require.ErrorIs(t, err, wire.ErrChecksum, "under another key")

	all := func(int, storage.TimedRecord) bool { return true }
	key = keys.Timed(1, 1)
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
	f.Add(sampleBlock(nil)[wire.SealLen:])
	f.Add([]byte{4, 0, 33, 1, 'a', 0, 0, 0})
	f.Fuzz(func(t *testing.T, content []byte) {
		s := wire.Scanner{B: content}
		dir := s.Bytes()
		raw, err := wire.Inflate(nil, s.B, rawLimit)
		if err != nil {
			raw = nil
		}
		require.LessOrEqual(t, len(raw), rawLimit)
		_ = readDirectory(dir, nil, func(e entry) error {
			n := 0
			err := readRecords(raw, e, math.MaxUint32, func(i int, r storage.Record) error { n++; return nil })
			if err == nil {
				require.Equal(t, int(e.count), n)
			}
			return nil
		})
	})
}

func FuzzTimed(f *testing.F) {
	f.Add(sampleTimed(nil)[wire.SealLen:])
	f.Add(s2.Encode(nil, []byte{0, 1, 'a', 0, 1, 0, 0, 0, 1, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, content []byte) {
		v := append(wire.AppendSeal(nil), content...)
		wire.CloseSeal(nil, v)
		n := 0
		_ = walkTimed(nil, v, func(pos int, r storage.TimedRecord) bool {
			n++
			return r.Host != ""
		})
		require.LessOrEqual(t, n, storage.MaxTimed)
		if b, err := ReadTimedHead(keys.Head(1, 1), v); err == nil {
			require.LessOrEqual(t, b.Count, storage.MaxTimed)
		}
	})
}

// FuzzKeys decodes any key, and values under it: what is understood names the key
// again, and nothing is read under another key.
func FuzzKeys(f *testing.F) {
	for _, k := range [][]byte{
		keys.Block(1, 2), keys.Timed(1, 2), keys.Head(1, 2), keys.Dead(3, 4), keys.Log(1, 5, 6), keys.Row("h:a.example"), keys.Prefix(keys.Fixed, keys.KindState), {}, {1},
	} {
		f.Add(k, sampleBlock(keys.Block(1, 2)))
		f.Add(k, sampleTimed(keys.Timed(1, 2)))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		_ = keys.LifeOf(key)
		if n, ok := keys.Number(key); ok {
			again := binary.BigEndian.AppendUint32(bytes.Clone(key[:keys.HeadLen]), n)
			require.Equal(t, key, again)
		}
		if id, piece, ok := keys.LogName(key); ok && keys.Kind(key[keys.HeadLen-1]) == keys.KindLog {
			require.Equal(t, key, keys.Log(binary.BigEndian.Uint32(key), id, piece))
		}
		_, _ = ReadTimedHead(key, value)
		_ = walkTimed(key, value, func(int, storage.TimedRecord) bool { return true })
		if _, _, err := split(key, value); err == nil {
			_, _, err := split(append(bytes.Clone(key), 0), value)
			require.Error(t, err, "under another key")
		}
	})
}
