// This file encodes batches for the log.
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
// The ID of the batch before tells a missing batch from a number that was left
// out because its Commit failed.

package spill

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/seed-7440039f/frontier"
)

const (
	pieceRaw  = 4 << 20
	maxPieces = 1 << 15

	admitSame = 1
	admitDue  = 2
	admitMark = 4
)

func appendBatch(dst []byte, b *frontier.Batch) []byte {
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
			dst = appendBytes(dst, a.Host)
			dst = binary.AppendUvarint(dst, uint64(a.Crawl))
			dst = append(dst, a.Priority)
		}
		dst = binary.AppendVarint(dst, int64(a.Seq-seq))
		seq = a.Seq
		if a.Due != 0 {
			dst = binary.AppendVarint(dst, a.Due)
		}
		dst = appendBytes(dst, a.Body)
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

func appendEffects(dst []byte, rows []frontier.Row, drop []uint32) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	for i := range rows {
		dst = appendBytes(dst, rows[i].Key)
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

// readBatch decodes what appendBatch wrote into b, whose memory it uses again.
// Bodies and row values alias raw.
func readBatch(b *frontier.Batch, raw []byte) error {
	s := scanner{b: raw}
	b.Time = s.varint()
	b.Admit, b.Finish, b.Rows, b.Drop = b.Admit[:0], b.Finish[:0], b.Rows[:0], b.Drop[:0]
	b.Marks = b.Marks[:0]
	seq := readAdmissions(&s, b)
	for n := s.uvarint(); n > 0 && s.err == nil; n-- {
		var c frontier.Completion
		seq += uint64(s.varint())
		c.Seq = seq
		c.Block = uint32(s.limited(1<<32 - 1))
		if c.Block != 0 {
			c.Pos = uint16(s.limited(1<<16 - 1))
		}
		b.Finish = append(b.Finish, c)
	}
	for n := s.uvarint(); n > 0 && s.err == nil; n-- {
		r := frontier.Row{Key: string(s.bytes())}
		if size := s.uvarint(); size > 0 {
			r.Value = s.take(size - 1)
		}
		b.Rows = append(b.Rows, r)
	}
	var block int64
	for n := s.uvarint(); n > 0 && s.err == nil; n-- {
		block += s.varint()
		if block < 0 || block >= 1<<32 {
			s.fail(errNumber)
		}
		b.Drop = append(b.Drop, uint32(block))
	}
	for n := s.uvarint(); n > 0 && s.err == nil; n-- {
		if m := s.take(uint64(len(frontier.Mark{}))); m != nil {
			b.Marks = append(b.Marks, frontier.Mark(m))
		}
	}
	return s.end()
}

func readAdmissions(s *scanner, b *frontier.Batch) (seq uint64) {
	var a frontier.Admission
	n := s.uvarint()
	for i := uint64(0); i < n && s.err == nil; i++ {
		flags := s.byte()
		if flags&^(admitSame|admitDue|admitMark) != 0 || i == 0 && flags&admitSame != 0 {
			s.fail(fmt.Errorf("flags of admission %d: %w", i, errNumber))
		}
		if flags&admitSame == 0 {
			if host := s.bytes(); string(host) != a.Host {
				a.Host = string(host)
			}
			a.Crawl = uint32(s.limited(1<<32 - 1))
			a.Priority = s.byte()
		}
		a.Seq += uint64(s.varint())
		a.Due = 0
		if flags&admitDue != 0 {
			a.Due = s.varint()
		}
		a.Body = s.bytes()
		a.HasMark = flags&admitMark != 0
		b.Admit = append(b.Admit, a)
	}
	for i := range b.Admit {
		if b.Admit[i].HasMark {
			copy(b.Admit[i].Mark[:], s.take(uint64(len(frontier.Mark{}))))
		}
	}
	return a.Seq
}

// piece is one stored value of a batch.
type piece struct{ key, value []byte }

// appendPieces cuts and compresses an encoded batch. Piece 0 comes first; it
// must be written last.
func appendPieces(dst []piece, gen uint32, id, before uint64, raw []byte) ([]piece, error) {
	more := 0
	if len(raw) > 0 {
		more = (len(raw) - 1) / pieceRaw
	}
	if more >= maxPieces {
		return dst, fmt.Errorf("batch of %d bytes is too large", len(raw))
	}
	for i := range more + 1 {
		part := raw[i*pieceRaw : min(len(raw), (i+1)*pieceRaw)]
		key := logKey(gen, id, uint16(i))
		v := make([]byte, 0, sealLen+2*binary.MaxVarintLen64+s2.MaxEncodedLen(len(part)))
		v = appendSeal(v)
		if i == 0 {
			v = binary.AppendUvarint(v, uint64(more))
			v = binary.AppendUvarint(v, before)
		}
		n := len(v)
		v = v[:n+len(s2.Encode(v[n:cap(v)], part))]
		closeSeal(key, v)
		dst = append(dst, piece{key, v})
	}
	return dst, nil
}

// readHead opens piece 0 and appends its content to raw.
func readHead(raw, key, value []byte) (_ []byte, more int, before uint64, err error) {
	content, err := unseal(key, value)
	if err != nil {
		return raw, 0, 0, err
	}
	s := scanner{b: content}
	more = int(s.limited(maxPieces - 1))
	before = s.uvarint()
	if s.err != nil {
		return raw, 0, 0, s.err
	}
	raw, err = appendInflated(raw, s.b)
	return raw, more, before, err
}

// readPiece opens any other piece and appends its content to raw.
func readPiece(raw, key, value []byte) ([]byte, error) {
	content, err := unseal(key, value)
	if err != nil {
		return raw, err
	}
	return appendInflated(raw, content)
}

func appendInflated(raw, body []byte) ([]byte, error) {
	if len(raw) == 0 {
		return inflate(raw, body, pieceRaw)
	}
	part, err := inflate(nil, body, pieceRaw)
	return append(raw, part...), err
}
