// Package journal encodes batches for the log. It keeps no state.
//
// A batch is encoded whole, then cut into pieces of at most pieceRaw bytes,
// compressed one by one. Piece 0 is written last and makes the batch valid:
//
//	piece 0: seal 5 | number of pieces - 1 | ID of the batch before | s2(first)
//	others:  seal 5 | s2(part)
//
//	batch: zigzag(time)
//	  count, for each admission:
//	    flags 1           1: same queue as before; 2: has due; 4: has mark
//	    host, crawl, priority 1    unless same queue
//	    zigzag(seq - seq before), zigzag(due) if it has one, body
//	  the marks of those that have one, 12 bytes each
//	  count, for each completion: zigzag(seq - seq before), block, position if block
//	  count, for each row: key, 0 or 1 + length of the value, value
//	  count, for each dropped block: zigzag(number - number before)
//	  count, for each mark without an admission: 12 bytes
//
// The ID of the batch before distinguishes a missing batch from a number that was left
// out because its Commit failed.
package journal

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	pieceRaw  = 4 << 20
	maxPieces = 1 << 15

	admitSame = 1
	admitDue  = 2
	admitMark = 4
)

// AppendBatch appends the encoded batch. AppendPieces prepares it for storage.
func AppendBatch(dst []byte, b *storage.Batch) []byte {
	dst = binary.AppendVarint(dst, b.Time)
	dst = binary.AppendUvarint(dst, uint64(len(b.Admit)))
	var seq uint64
	for i := range b.Admit {
		a := &b.Admit[i]
		flags := byte(0)
		if i > 0 && a.Queue == b.Admit[i-1].Queue {
			flags |= admitSame
		}
		if a.Due != 0 {
			flags |= admitDue
		}
		if a.HasMark {
			flags |= admitMark
		}
		dst = append(dst, flags)
		if flags&admitSame == 0 {
			dst = wire.AppendBytes(dst, a.Host)
			dst = binary.AppendUvarint(dst, uint64(a.Crawl))
			dst = append(dst, a.Priority)
		}
		dst = binary.AppendVarint(dst, int64(a.Seq-seq))
		seq = a.Seq
		if a.Due != 0 {
			dst = binary.AppendVarint(dst, a.Due)
		}
		dst = wire.AppendBytes(dst, a.Body)
	}
	for i := range b.Admit {
		if b.Admit[i].HasMark {
			dst = append(dst, b.Admit[i].Mark[:]...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.Finish)))
	for i := range b.Finish {
		c := &b.Finish[i]
		dst = binary.AppendVarint(dst, int64(c.Seq-seq))
		seq = c.Seq
		dst = binary.AppendUvarint(dst, uint64(c.Block))
		if c.Block != 0 {
			dst = binary.AppendUvarint(dst, uint64(c.Pos))
		}
	}
	dst = appendEffects(dst, b.Rows, b.Drop)
	dst = binary.AppendUvarint(dst, uint64(len(b.Marks)))
	for i := range b.Marks {
		dst = append(dst, b.Marks[i][:]...)
	}
	return dst
}

func appendEffects(dst []byte, rows []storage.Row, drop []uint32) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	for i := range rows {
		dst = wire.AppendBytes(dst, rows[i].Key)
		if rows[i].Value == nil {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(rows[i].Value))+1)
		dst = append(dst, rows[i].Value...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(drop)))
	var before uint32
	for _, d := range drop {
		dst = binary.AppendVarint(dst, int64(d)-int64(before))
		before = d
	}
	return dst
}

// ReadBatch decodes the output of AppendBatch into b, whose memory it reuses. Bodies and row values
// alias raw.
func ReadBatch(b *storage.Batch, raw []byte) error {
	s := wire.Scanner{B: raw}
	b.Time = s.Varint()
	b.Admit, b.Finish, b.Rows, b.Drop = b.Admit[:0], b.Finish[:0], b.Rows[:0], b.Drop[:0]
	b.Marks = b.Marks[:0]
	seq := readAdmissions(&s, b)
	for n := s.Uvarint(); n > 0 && s.Err == nil; n-- {
		var c storage.Completion
		seq += uint64(s.Varint())
		c.Seq = seq
		c.Block = uint32(s.Limited(1<<32 - 1))
		if c.Block != 0 {
			c.Pos = uint16(s.Limited(1<<16 - 1))
		}
		b.Finish = append(b.Finish, c)
	}
	for n := s.Uvarint(); n > 0 && s.Err == nil; n-- {
		r := storage.Row{Key: string(s.Bytes())}
		if size := s.Uvarint(); size > 0 {
			r.Value = s.Take(size - 1)
		}
		b.Rows = append(b.Rows, r)
	}
	var block int64
	for n := s.Uvarint(); n > 0 && s.Err == nil; n-- {
		block += s.Varint()
		if block < 0 || block >= 1<<32 {
			s.Fail(wire.ErrNumber)
		}
		b.Drop = append(b.Drop, uint32(block))
	}
	for n := s.Uvarint(); n > 0 && s.Err == nil; n-- {
		if m := s.Take(uint64(len(storage.Mark{}))); m != nil {
			b.Marks = append(b.Marks, storage.Mark(m))
		}
	}
	return s.End()
}

func readAdmissions(s *wire.Scanner, b *storage.Batch) (seq uint64) {
	var a storage.Admission
	n := s.Uvarint()
	for i := uint64(0); i < n && s.Err == nil; i++ {
		flags := s.Byte()
		if flags&^(admitSame|admitDue|admitMark) != 0 || i == 0 && flags&admitSame != 0 {
			s.Fail(fmt.Errorf("flags of admission %d: %w", i, wire.ErrNumber))
		}
		if flags&admitSame == 0 {
			if host := s.Bytes(); string(host) != a.Host {
				a.Host = string(host)
			}
			a.Crawl = uint32(s.Limited(1<<32 - 1))
			a.Priority = s.Byte()
		}
		a.Seq += uint64(s.Varint())
		a.Due = 0
		if flags&admitDue != 0 {
			a.Due = s.Varint()
		}
		a.Body = s.Bytes()
		a.HasMark = flags&admitMark != 0
		b.Admit = append(b.Admit, a)
	}
	for i := range b.Admit {
		if b.Admit[i].HasMark {
			copy(b.Admit[i].Mark[:], s.Take(uint64(len(storage.Mark{}))))
		}
	}
	return a.Seq
}

// Piece is one stored value of a batch.
type Piece struct{ Key, Value []byte }

// AppendPieces cuts and compresses an encoded batch. Piece 0 comes first; it must be written last.
func AppendPieces(dst []Piece, gen uint32, id, before uint64, raw []byte) ([]Piece, error) {
	more := 0
	if len(raw) > 0 {
		more = (len(raw) - 1) / pieceRaw
	}
	if more >= maxPieces {
		return dst, fmt.Errorf("batch of %d bytes is too large", len(raw))
	}
	for i := range more + 1 {
		part := raw[i*pieceRaw : min(len(raw), (i+1)*pieceRaw)]
		key := keys.Log(gen, id, uint16(i))
		v := make([]byte, 0, wire.SealLen+2*binary.MaxVarintLen64+s2.MaxEncodedLen(len(part)))
		v = wire.AppendSeal(v)
		if i == 0 {
			v = binary.AppendUvarint(v, uint64(more))
			v = binary.AppendUvarint(v, before)
		}
		n := len(v)
		v = v[:n+len(s2.Encode(v[n:cap(v)], part))]
		wire.CloseSeal(key, v)
		dst = append(dst, Piece{key, v})
	}
	return dst, nil
}

// ReadHead opens piece 0 and appends its content to raw.
func ReadHead(raw, key, value []byte) (_ []byte, more int, before uint64, err error) {
	content, err := wire.Unseal(key, value)
	if err != nil {
		return raw, 0, 0, err
	}
	s := wire.Scanner{B: content}
	more = int(s.Limited(maxPieces - 1))
	before = s.Uvarint()
	if s.Err != nil {
		return raw, 0, 0, s.Err
	}
	raw, err = appendInflated(raw, s.B)
	return raw, more, before, err
}

// ReadPiece opens any other piece and appends its content to raw.
func ReadPiece(raw, key, value []byte) ([]byte, error) {
	content, err := wire.Unseal(key, value)
	if err != nil {
		return raw, err
	}
	return appendInflated(raw, content)
}

func appendInflated(raw, body []byte) ([]byte, error) {
	if len(raw) == 0 {
		return wire.Inflate(raw, body, pieceRaw)
	}
	part, err := wire.Inflate(nil, body, pieceRaw)
	return append(raw, part...), err
}
