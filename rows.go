// This file encodes the few values that a frontier keeps by name: of itself, of
// hosts and of groups.

package frontier

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Names of rows.
const (
	rowMeta  = "m"  // the frontier's own: see metaRowLocked
	rowHost  = "h:" // and a host key: see hostRow
	rowGroup = "g:" // and a group's name: varint free, Unix milliseconds
	rowRule  = "r:" // and a Scope's ruleKey: see ruleRow
	rowNote  = "x:" // and a mark: see noteRow
	rowCrawl = "c:" // and a crawl's number, 4 bytes big endian: see crawlRow
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

// hostState is what the row of a host says.
type hostState struct {
	due        int64 // Unix milliseconds
	crawlDelay int32
	group      string
}

// decodeHost is the inverse of hostRow.
func decodeHost(name string, value []byte) (s hostState, err error) {
	due, n := binary.Varint(value)
	if n <= 0 {
		return s, &CorruptError{Key: []byte(rowHost + name), Err: errRow}
	}
	delay, k := binary.Uvarint(value[n:])
	if k <= 0 || delay > uint64(maxCrawlDelay/time.Millisecond) {
		return s, &CorruptError{Key: []byte(rowHost + name), Err: errRow}
	}
	return hostState{due, int32(delay), string(value[n+k:])}, nil
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
		if d == nil {
			d = f.opts.GroupDelay
		}
		return max(0, f.heldFrom+int64(d.Max()))
	}
	return nil
}

// hostRow encodes a host's clock for the store: due in Unix milliseconds, crawl
// delay in milliseconds, group.
func (f *Frontier) hostRow(h *host, due int64) Row {
	b := binary.AppendVarint(nil, wallMillis(f.wall(due)))
	b = binary.AppendUvarint(b, uint64(h.crawlDelay))
	if h.group != 0 {
		b = append(b, f.core.groups.at(h.group).name...)
	}
	return Row{Key: rowHost + string(f.core.name(h)), Value: b}
}

// noteLocked adds a row to o if a crash would otherwise forget something of the
// host: a new crawl delay or group, or a time beyond what every host is left
// alone for after a crash. The host is pinned until o is settled.
func (f *Frontier) noteLocked(o *op, id uint32, due, now int64) {
	h := f.core.hosts.at(id)
	due = max(due, h.due)
	if h.unsaved || due-now > f.maxDelay {
		h.unsaved, h.stored = false, true
		f.pinLocked(o, id)
		o.rows = append(o.rows, f.hostRow(h, due))
		f.core.rows.Add(f.core.hash(f.core.name(h)))
	}
}

// pinLocked keeps a host in memory until o is settled.
func (f *Frontier) pinLocked(o *op, id uint32) {
	if o.pinned == 0 {
		f.core.hosts.at(id).pins++
		o.pinned = id
	}
}
