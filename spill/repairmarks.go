// This file salvages the marks of known URLs: intact files are copied, and from the others the
// readable pages. If a file is damaged, files that the state does not list are used as well: a
// merge leaves such files before and after it, a round before it.

package spill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
)

// copyMarks copies the runs that the state lists, or all runs if there is no state.
func (r *repair) copyMarks() error {
	refs := r.state.runs
	r.state.runs = nil
	last := uint32(0)
	names, err := r.in.ListFiles(marks.Folder)
	if err != nil {
		return err
	}
	slices.Sort(names)
	var others []marks.Ref
	for _, ref := range refs {
		last = max(last, ref.ID)
	}
	for _, name := range names {
		id, ok := marks.IDOf(name)
		if !ok || slices.ContainsFunc(refs, func(x marks.Ref) bool { return x.ID == id }) {
			continue
		}
		last = max(last, id)
		others = append(others, marks.RefOf(r.in, id))
	}
	if r.guessed {
		refs, others = append(refs, others...), nil
	}
	want, found := uint64(0), len(r.report.Lost)
	for _, ref := range refs {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		want += ref.Count
		if r.copyRun(ref) {
			r.state.runs = append(r.state.runs, ref)
			continue
		}
		last++
		saved, err := r.saveRun(ref, last)
		if err != nil {
			return err
		}
		if saved.Count > 0 {
			r.state.runs = append(r.state.runs, saved)
		}
	}
	if lost := r.report.Lost[found:]; len(lost) > 0 {
		if err := r.helpOut(others, last+1, want, lost); err != nil {
			return err
		}
	}
	for _, ref := range r.state.runs {
		r.report.Marks += int64(ref.Count)
	}
	return nil
}

// helpOut adds the marks of intact files that the state does not list, and merges everything into one
// run without duplicates. lost are the reports of damaged runs, which together had that many marks.
func (r *repair) helpOut(others []marks.Ref, id uint32, want uint64, lost []Loss) error {
	helped := false
	for _, ref := range others {
		if ref.Count > 0 && r.copyRun(ref) {
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
	r.state.runs = []marks.Ref{one}
	missing := int(want) - int(one.Count)
	for i := range lost {
		if l := &lost[i]; l.URLs > 0 {
			l.URLs = min(l.URLs, max(missing, 0))
			missing -= l.URLs
		}
	}
	return nil
}

// uniteRuns merges all salvaged runs into one and removes their files.
func (r *repair) uniteRuns(id uint32) (one marks.Ref, err error) {
	var files []*marks.File
	defer func() {
		var names []string
		for _, x := range files {
			err = errors.Join(err, x.CloseFile())
			names = append(names, x.Name())
		}
		if err == nil {
			err = r.out.RemoveFiles(names...)
		}
	}()
	var count uint64
	var level uint8
	for _, ref := range r.state.runs {
		x, err := marks.OpenFile(r.out, ref)
		if err != nil {
			return one, err
		}
		files = append(files, x)
		count, level = count+ref.Count, max(level, ref.Level)
	}
	w, err := marks.Create(r.out, id, count)
	if err != nil {
		return one, err
	}
	n := 0
	err = marks.Each(files, func(hi uint64, lo uint32) error {
		if n%marks.MergeStep == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		n++
		return w.Add(hi, lo)
	})
	if err == nil {
		one, err = w.Finish(level)
	}
	if err != nil {
		return one, errors.Join(err, w.Abandon(r.out))
	}
	return one, nil
}

// copyRun copies a file that is whole, and reports whether it is.
func (r *repair) copyRun(ref marks.Ref) bool {
	f, err := r.in.OpenFile(marks.NameOf(ref.ID))
	if err != nil {
		return false
	}
	defer f.Close()
	if marks.Verify(f, ref) != nil {
		return false
	}
	w, err := r.out.CreateFile(marks.NameOf(ref.ID), f.Size())
	if err != nil {
		return false
	}
	_, err = io.Copy(io.NewOffsetWriter(w, 0), io.NewSectionReader(f, 0, f.Size()))
	return errors.Join(err, w.Sync(), w.Close()) == nil
}

// saveRun makes a new run from the readable pages of a damaged one.
func (r *repair) saveRun(ref marks.Ref, id uint32) (marks.Ref, error) {
	name := marks.NameOf(ref.ID)
	var ms []storage.Mark
	var damage error
	f, err := r.in.OpenFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		damage = marks.ErrNoRun
	case err != nil:
		return marks.Ref{}, err
	default:
		defer f.Close()
		if ms, damage, err = marks.Salvage(f, ref.ID); err != nil {
			return marks.Ref{}, err
		}
	}
	if lost := int64(ref.Count) - int64(len(ms)); lost > 0 || ref.Count == 0 {
		if damage == nil {
			damage = marks.ErrSize
		}
		if lost <= 0 {
			lost = -1
		}
		r.lost(Loss{What: "known URLs", File: name, URLs: int(lost), Err: firstOf(damage)})
	} else {
		r.lost(Loss{What: "known URLs", File: name, Err: marks.ErrFooter})
	}
	if len(ms) == 0 {
		return marks.Ref{}, nil
	}
	w, err := marks.Create(r.out, id, uint64(len(ms)))
	if err != nil {
		return marks.Ref{}, err
	}
	var saved marks.Ref
	if err = w.AddAll(ms); err == nil {
		saved, err = w.Finish(ref.Level)
	}
	if err != nil {
		return marks.Ref{}, errors.Join(err, w.Abandon(r.out))
	}
	return saved, nil
}

// firstOf shortens joined errors: what follows the pages is not a page either.
func firstOf(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) == 0 {
		return err
	}
	return fmt.Errorf("%w (and %d more)", joined.Unwrap()[0], len(joined.Unwrap())-1)
}
