// This file salvages what is known: files of marks that are whole are copied,
// of the others the pages that can be read.

package spill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/seed-7440039f/frontier"
)

// copyMarks copies the runs that the state names, or all if nothing tells which.
func (r *repair) copyMarks() error {
	refs := r.state.runs
	r.state.runs = nil
	last := uint32(0)
	names, err := r.in.ListFiles(runFolder)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if id, ok := runID(name); ok {
			last = max(last, id)
			if r.guessed {
				refs = append(refs, r.refOf(id))
			}
		}
	}
	for _, ref := range refs {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if r.copyRun(ref) {
			r.state.runs = append(r.state.runs, ref)
			r.report.Marks += int64(ref.count)
			continue
		}
		last++
		saved, err := r.saveRun(ref, last)
		if err != nil {
			return err
		}
		if saved.count > 0 {
			r.state.runs = append(r.state.runs, saved)
			r.report.Marks += int64(saved.count)
		}
	}
	return nil
}

// refOf is what the file of a run says of itself.
func (r *repair) refOf(id uint32) runRef {
	ref := runRef{id: id}
	f, err := r.in.OpenFile(runName(id))
	if err != nil {
		return ref
	}
	defer f.Close()
	var end [footerLen]byte
	if _, err := f.ReadAt(end[:], max(0, f.Size()-footerLen)); err != nil {
		return ref
	}
	if foot, sum, err := readFooter(end[:], f.Size()); err == nil {
		ref.count, ref.sum = foot.marks, sum
	}
	return ref
}

// copyRun copies a file that is whole, and reports whether it is.
func (r *repair) copyRun(ref runRef) bool {
	f, err := r.in.OpenFile(runName(ref.id))
	if err != nil {
		return false
	}
	defer f.Close()
	run := &runFile{runRef: ref, f: f}
	if run.load() != nil {
		return false
	}
	filter, err := run.loadFilter(1)
	filter.free()
	if err != nil {
		return false
	}
	for c := newCursor(run); ; {
		if page, err := c.fill(); err != nil {
			return false
		} else if page == nil {
			break
		}
	}
	w, err := r.out.CreateFile(runName(ref.id), f.Size())
	if err != nil {
		return false
	}
	_, err = io.Copy(io.NewOffsetWriter(w, 0), io.NewSectionReader(f, 0, f.Size()))
	return errors.Join(err, w.Sync(), w.Close()) == nil
}

// saveRun makes a new run of the pages of a damaged one that can be read.
func (r *repair) saveRun(ref runRef, id uint32) (runRef, error) {
	name := runName(ref.id)
	var ms []frontier.Mark
	var damage error
	f, err := r.in.OpenFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		damage = errNoRun
	case err != nil:
		return runRef{}, err
	default:
		defer f.Close()
		page := make([]byte, pageSize)
		for n := uint32(0); int64(n+1)*pageSize <= f.Size(); n++ {
			if _, err := f.ReadAt(page, int64(n)*pageSize); err != nil {
				return runRef{}, err
			}
			marks, err := openPage(ref.id, n, page)
			if err != nil {
				damage = errors.Join(damage, err)
				continue
			}
			for ; len(marks) > 0; marks = marks[markLen:] {
				ms = append(ms, frontier.Mark(marks[:markLen]))
			}
		}
	}
	if lost := int64(ref.count) - int64(len(ms)); lost > 0 || ref.count == 0 {
		if damage == nil {
			damage = errSize
		}
		if lost <= 0 {
			lost = -1
		}
		r.lost(Loss{What: "known URLs", File: name, URLs: int(lost), Err: firstOf(damage)})
	} else {
		r.lost(Loss{What: "known URLs", File: name, Err: errFooter})
	}
	if len(ms) == 0 {
		return runRef{}, nil
	}
	sortMarks(ms)
	w, err := newRunWriter(r.out, id, uint64(len(ms)))
	if err != nil {
		return runRef{}, err
	}
	for i := range ms {
		hi, lo := splitMark(ms[i][:])
		if err := w.add(hi, lo); err != nil {
			return runRef{}, errors.Join(err, w.abandon(r.out))
		}
	}
	saved, err := w.finish(ref.level, true)
	if err != nil {
		return runRef{}, errors.Join(err, w.abandon(r.out))
	}
	return saved, nil
}

// firstOf shortens joined errors: what lies behind the pages is no page either.
func firstOf(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) == 0 {
		return err
	}
	return fmt.Errorf("%w (and %d more)", joined.Unwrap()[0], len(joined.Unwrap())-1)
}
