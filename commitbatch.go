// This file tells what a batch says of a finished record, and what it counts as in the
// log.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// completionLocked tells where the record lies that is finished.
func (f *Frontier) completionLocked(ref arena.Ref) Completion {
	r := f.core.record(ref)
	x := Completion{Seq: r.seq()}
	if id := r.part(); id != 0 {
		p := f.core.parts.at(id)
		t := f.core.detail(p)
		x.Block, x.Pos = p.block, t.first+uint16(r.pos())
	}
	return x
}

// markLog is what a mark without an admission counts as in the log, so that a
// round begins before there are more young marks than with admissions.
const markLog = 64

func batchBytes(b *Batch) int64 {
	n := int64(32 + 16*len(b.Finish) + markLog*len(b.Marks))
	for i := range b.Admit {
		n += int64(len(b.Admit[i].Body) + len(b.Admit[i].Host) + 24)
	}
	return n
}
