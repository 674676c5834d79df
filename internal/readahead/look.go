// This file shows what is on disk to operators.

package readahead

import (
	"context"
	"slices"

	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// EachTimed calls fn, without the lock, with the records in timed blocks that are wanted and neither
// finished nor superseded, until it returns false. It skips damaged blocks, which their reader reports.
// moved reports that it skipped others because their records have come into memory or are finished.
func (r *Reader) EachTimed(ctx context.Context, blocks []timeheap.Item, wanted func(*storage.TimedRecord) bool, fn func(*timed.Loaded) bool) (moved bool, err error) {
	for _, it := range blocks {
		if err := ctx.Err(); err != nil {
			return moved, err
		}
		found, err := patience.Ask(ctx, r.Life, func() ([]timed.Loaded, error) { return r.unread(it, wanted) })
		if err == nil && len(found) == 0 {
			continue
		}
		r.Mu.Lock()
		closed, gone := r.up.Closed(), !r.Core.Timed.Has(it.ID)
		if err == nil {
			found = slices.DeleteFunc(found, func(x timed.Loaded) bool {
				return r.Core.Blocks.IsBuried(it.ID, x.Pos) || r.Core.Deleted(x.Host, x.Crawl, x.Seq) || r.supersededBody(&x)
			})
		}
		r.Mu.Unlock()
		switch {
		case closed:
			return moved, storage.ErrClosed
		case gone:
			moved = true
			continue
		case isCorrupt(err):
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

// supersededBody reports whether a Force has replaced a record whose mark is unknown.
func (r *Reader) supersededBody(x *timed.Loaded) bool {
	if r.Notes.Len() == 0 {
		return false
	}
	b, err := record.Decode(x.Body)
	if err != nil {
		return false
	}
	x.Mark = r.Found.Mark(x.Host, x.Crawl, string(b.URL))
	return r.Found.Superseded(x)
}
