// This file looks for records that wait for their time on disk, on behalf of those
// who ask about a host or a URL. It reads timed blocks outside the lock and leaves
// them as they are.

package frontier

import (
	"context"
	"errors"
	"slices"
)

// eachTimed calls fn, without the lock, with the records in timed blocks that are
// wanted and neither finished nor superseded, until it returns false. Blocks that
// are damaged are left out: their reader reports them. moved tells that others were
// left out because what they had has come into memory, or is finished.
func (f *Frontier) eachTimed(ctx context.Context, blocks []timeItem, wanted func(*TimedRecord) bool, fn func(*timedLoaded) bool) (moved bool, err error) {
	for _, it := range blocks {
		if err := ctx.Err(); err != nil {
			return moved, err
		}
		found, err := ask(ctx, f, func() (found []timedLoaded, err error) {
			err = f.opts.Spill.LoadTimed(it.id, timedFirst(it), func(pos int, r TimedRecord) bool {
				if wanted(&r) {
					r.Body = append([]byte(nil), r.Body...)
					found = append(found, timedLoaded{TimedRecord: r, pos: pos, at: f.date(millisTime(r.Due))})
				}
				return true
			})
			return found, err
		})
		if err == nil && len(found) == 0 {
			continue
		}
		f.mu.Lock()
		closed, gone := f.closed, !f.timedHasLocked(it.id)
		if err == nil {
			found = slices.DeleteFunc(found, func(r timedLoaded) bool {
				return f.core.isBuried(it.id, r.pos) || f.core.deleted(r.Host, r.Crawl, r.Seq) || f.supersededBodyLocked(&r)
			})
		}
		f.mu.Unlock()
		var corrupt *CorruptError
		switch {
		case closed:
			return moved, ErrClosed
		case gone:
			moved = true
			continue
		case errors.As(err, &corrupt):
			continue
		case err != nil:
			return moved, err
		}
		for i := range found {
			if !fn(&found[i]) {
				return moved, nil
			}
		}
	}
	return moved, nil
}

// timedHasLocked reports whether a timed block holds records that are on disk only.
func (f *Frontier) timedHasLocked(id uint32) bool {
	t := &f.core.timed
	return t.reading.id == id || t.unread.find(id) != 0
}

// supersededBodyLocked reports whether a Force has replaced a record whose mark is
// not known.
func (f *Frontier) supersededBodyLocked(r *timedLoaded) bool {
	if len(f.notes.at) == 0 {
		return false
	}
	b, err := decodeBody(r.Body)
	if err != nil {
		return false
	}
	r.mark = f.markOf(r.Crawl, string(b.url))
	return f.supersededLocked(r)
}
