// This file encodes what a frontier keeps of itself, and names the rows of
// everything that it keeps by name.

package frontier

import (
	"fmt"

	"github.com/seed-7440039f/frontier/internal/metarow"
)

// Names of rows.
const (
	rowMeta     = metarow.Name // the frontier's own: see metaRowLocked
	rowHost     = "h:"         // and a host key: see hostRow
	rowGroup    = "g:"         // and a group's name: varint free, Unix milliseconds
	rowRule     = "r:"         // and a Scope's ruleKey: see ruleRow
	rowDeletion = "e:"         // and a deletion's number: see deletion.row
	rowNote     = "x:"         // and a mark: see noteRow
	rowHint     = "i:"         // and a mark: see hintRow
	rowUse      = "u:"         // and "r" and a Scope's ruleKey, or "c" and a crawl's number: see appendUsage
	rowCrawl    = "c:"         // and a crawl's number, 4 bytes big endian: see crawlRow
)

// metaRowLocked encodes what the frontier must know of itself: version of this
// encoding, key of the fingerprints, how often it was opened, whether it was
// closed, last sequence number, generation, and when it was last opened after a
// crash.
func (f *Frontier) metaRowLocked(gen uint32, clean bool) Row {
	m := metarow.Meta{Key: f.core.key, Epoch: f.epoch, Clean: clean, Seq: f.seq, Gen: gen}
	if f.heldFrom != notHeld {
		m.Held = uint64(wallMillis(f.wall(f.heldFrom)))
	}
	return Row{Key: rowMeta, Value: m.Encode()}
}

func (r *recovery) meta(v []byte) error {
	corrupt := &CorruptError{Key: []byte(rowMeta), Err: errRow}
	if len(v) < 1 || v[0] == 0 {
		return corrupt
	}
	if v[0] != metarow.Version {
		return fmt.Errorf("%w: frontier rows are of version %d, this is version %d", ErrVersion, v[0], metarow.Version)
	}
	m, err := metarow.Decode(v)
	if err != nil {
		return corrupt
	}
	f := r.f
	f.core.key, f.epoch, f.seq, f.gen = m.Key, m.Epoch, m.Seq, m.Gen
	r.clean = m.Clean
	switch {
	case !r.clean:
		f.heldFrom = 0
	case m.Held != 0:
		f.heldFrom = min(0, f.owed(millisTime(int64(m.Held))))
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
