// This file salvages what is known: files of marks that are whole are copied,
// of the others the pages that can be read. If one is not whole, files that the state
// does not name help out: a merge leaves such before and after, a round before.

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
	var others []runRef
	for _, ref := range refs {
		last = max(last, ref.id)
	}
	for _, name := range names {
		id, ok := runID(name)
		if !ok || slices.ContainsFunc(refs, func(x runRef) bool { return x.id == id }) {
			continue
		}
		last = max(last, id)
		others = append(others, r.refOf(id))
	}
	if r.guessed {
		refs, others = append(refs, others...), nil
	}
	want, found := uint64(0), len(r.report.Lost)
	for _, ref := range refs {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		want += ref.count
		if r.copyRun(ref) {
			r.state.runs = append(r.state.runs, ref)
			continue
		}
		last++
		saved, err := r.saveRun(ref, last)
		if err != nil {
			return err
		}
		if saved.count > 0 {
			r.state.runs = append(r.state.runs, saved)
		}
	}
	if lost := r.report.Lost[found:]; len(lost) > 0 {
		if err := r.helpOut(others, last+1, want, lost); err != nil {
			return err
		}
	}
	for _, ref := range r.state.runs {
		r.report.Marks += int64(ref.count)
	}
	return nil
}

// helpOut adds what whole files know that the state does not name, and makes one run of
// all, without what is there twice. lost is what was reported of runs that had so many
// marks in all.
func (r *repair) helpOut(others []runRef, id uint32, want uint64, lost []Loss) error {
	helped := false
	for _, ref := range others {
		if ref.count > 0 && r.copyRun(ref) {
			r.state.runs = append(r.state.runs, ref)
			helped = true
		}
	}
	if !helped {
		return nil
	}
	one, err := r.uniteRuns(id)
	if err != nil {
		return err
	}
	r.state.runs = []runRef{one}
	missing := int(want) - int(one.count)
	for i := range lost {
		if l := &lost[i]; l.URLs > 0 {
			l.URLs = min(l.URLs, max(missing, 0))
			missing -= l.URLs
		}
	}
	return nil
}

// uniteRuns makes one run of all that were salvaged, whose files it removes.
func (r *repair) uniteRuns(id uint32) (one runRef, err error) {
	var files []*runFile
	defer func() {
		for _, x := range files {
			err = errors.Join(err, x.f.Close())
			if err == nil {
				err = r.out.RemoveFile(x.name())
			}
		}
	}()
	var count uint64
	var level uint8
	for _, ref := range r.state.runs {
		x := &runFile{runRef: ref}
		if x.f, err = r.out.OpenFile(x.name()); err != nil {
			return one, err
		}
		files = append(files, x)
		if err = x.load(); err != nil {
			return one, err
		}
		count, level = count+ref.count, max(level, ref.level)
	}
	w, err := newRunWriter(r.out, id, count)
	if err != nil {
		return one, err
	}
	err = eachMark(files, func(hi uint64, lo uint32) error {
		if w.foot.marks%uint64(mergeStep) == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		return w.add(hi, lo)
	})
	if err == nil {
		one, err = w.finish(level)
	}
	if err != nil {
		return one, errors.Join(err, w.abandon(r.out))
	}
	return one, nil
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
	saved, err := w.finish(ref.level)
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
