// This file encodes what a frontier keeps of itself, and names the rows of
// everything that it keeps by name.

package frontier

import (
	"encoding/binary"
	"fmt"
)

// Names of rows.
const (
	rowMeta     = "m"  // the frontier's own: see metaRowLocked
	rowHost     = "h:" // and a host key: see hostRow
	rowGroup    = "g:" // and a group's name: varint free, Unix milliseconds
	rowRule     = "r:" // and a Scope's ruleKey: see ruleRow
	rowDeletion = "e:" // and a deletion's number: see deletion.row
	rowNote     = "x:" // and a mark: see noteRow
	rowUse      = "u:" // and "r" and a Scope's ruleKey, or "c" and a crawl's number: see appendUsage
	rowCrawl    = "c:" // and a crawl's number, 4 bytes big endian: see crawlRow
)

// metaRowLocked encodes what the frontier must know of itself: version of this
// encoding, key of the fingerprints, how often it was opened, whether it was
// closed, last sequence number, generation, and when it was last opened after a
// crash.
func (f *Frontier) metaRowLocked(gen uint32, clean bool) Row {
	b := []byte{1}
	b = binary.LittleEndian.AppendUint64(b, f.core.key[0])
	b = binary.LittleEndian.AppendUint64(b, f.core.key[1])
	b = binary.AppendUvarint(b, f.epoch)
	if clean {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, f.seq)
	b = binary.AppendUvarint(b, uint64(gen))
	if f.heldFrom == notHeld {
		return Row{Key: rowMeta, Value: append(b, 0)}
	}
	b = binary.AppendUvarint(b, uint64(wallMillis(f.wall(f.heldFrom))))
	return Row{Key: rowMeta, Value: b}
}

func (r *recovery) meta(v []byte) error {
	corrupt := &CorruptError{Key: []byte(rowMeta), Err: errRow}
	if len(v) < 1 {
		return corrupt
	}
	if v[0] != 1 {
		return fmt.Errorf("%w: frontier rows are of version %d, this is version 1", ErrVersion, v[0])
	}
	if len(v) < 17 {
		return corrupt
	}
	f := r.f
	f.core.key = [2]uint64{binary.LittleEndian.Uint64(v[1:]), binary.LittleEndian.Uint64(v[9:])}
	v = v[17:]
	var fields [4]uint64
	for i := range fields {
		if i == 1 {
			if len(v) == 0 {
				return corrupt
			}
			r.clean = v[0] == 1
			v = v[1:]
		}
		x, n := binary.Uvarint(v)
		if n <= 0 {
			return corrupt
		}
		fields[i], v = x, v[n:]
	}
	f.epoch, f.seq, f.gen = fields[0], fields[1], uint32(fields[2])
	switch {
	case !r.clean:
		f.heldFrom = 0
	case fields[3] != 0:
		f.heldFrom = min(0, f.since(millisTime(int64(fields[3]))))
	default:
		return nil
	}
	f.core.hold = max(0, f.heldFrom+f.maxDelay)
	f.core.holdOf = f.hold
	f.core.groupHold = func(d DelayPolicy) int64 {
		longest := f.core.cfg.groupMax // a policy of the user's is not asked with the lock held
		if d != nil {
			longest = int64(d.Max())
		}
		return max(0, f.heldFrom+longest)
	}
	return nil
}
