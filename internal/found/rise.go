// This file raises waiting URLs that deserve more. There is no index of those either: package rise notes which
// do, and one walk through the queues of a host finds them.

package found

import (
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/rise"
)

// rising is a URL that waits, and what it becomes.
type rising struct {
	*rise.Found
	next ledger.Entry
}

// Again is a known URL that was found again, and deserves a priority if it waits.
type Again struct {
	*ledger.Entry
	Deserves uint8
	Said     rise.Hint
}

// Note notes what deserves more. The lock is not held.
func (f *Found) Note(better []Again) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for i := range better {
		if i%ledger.AtOnce == ledger.AtOnce-1 {
			f.Mu.Unlock()
			f.Mu.Lock()
		}
		e := &better[i]
		if id := f.Core.Lookup(e.Hash, e.Host); id != 0 && f.Core.Hosts.At(id).Waiting > 0 {
			f.Rises.Add(f.up.Last(), id, e.Mark, e.Deserves, e.Said, int(f.Core.Hosts.At(id).Waiting), f.Core.TopPriority(id))
		}
	}
	f.up.Dispatch()
}

// round searches hosts for URLs that deserve more, and moves them: those of several hosts in one commit.
func (f *Found) round() {
	f.up.LockPresent()
	began := f.up.Last()
	for !f.up.Ended() {
		w := f.Rises.Next(f.Core, f.Mark)
		if w == nil {
			break
		}
		f.Mu.Unlock()
		f.search(w)
		f.up.LockPresent()
		f.Rises.Ended(w)
	}
	f.Mu.Unlock()
	f.raise()
	f.up.LockPresent()
	f.Rises.End(began, f.up.Last())
	f.Core.Stats.Risen += f.moved
	f.moved = 0
	f.up.Dispatch()
	f.Mu.Unlock()
}

// search finds the noted URLs of a host that deserve more.
func (f *Found) search(w *rise.Walk) {
	prepare := func() { f.ask(w); w.MakeRoom() }
	prepare()
	f.Mu.Lock()
	f.up.WalkAndUnlock(w.Walk, prepare)
	for i := range w.Parts {
		prepare()
		p := &w.Parts[i]
		records, err := f.up.Load(patience.Forever, p.Part, p.Want)
		if err == nil && !w.Read(p, records) { // what is damaged is reported when its turn comes
			break
		}
	}
	f.ask(w)
}

// ask asks the policies what becomes of the URLs that were found.
func (f *Found) ask(w *rise.Walk) {
	found := w.Found
	if w.Found = nil; len(found) == 0 {
		return
	}
	f.up.Guard("the code that raises URLs", w.Host, func() {
		for i := range found {
			if next, ok := f.up.Rise(&found[i], w.Host); ok {
				f.better, f.held = append(f.better, rising{&found[i], next}), append(f.held, found[i].Mark)
			}
		}
	})
	if len(f.better) >= hintsAtOnce {
		f.raise()
	}
}

// raise moves what rises.
func (f *Found) raise() {
	jobs, moved := ledger.Jobs{Ledger: f.Ledger}, int64(0)
	f.apart(f.held, func() {
		if len(f.better) == 0 || f.up.LockOpen() != nil {
			return
		}
		for i := range f.better {
			x := &f.better[i]
			if f.Core.Deleted(x.next.Host, x.Crawl, x.Seq) {
				continue
			}
			if queue, ref, remove, ok := x.Take(f.Core); ok {
				o := &ledger.Op{}
				f.Ledger.Withdraw(o, queue, ref, remove)
				o.Entries = append(o.Entries, x.next)
				f.Hints.Drop(x.Mark)
				moved++
				jobs.AddYielding(o)
			}
		}
		if jobs.AwaitAndUnlock() == nil {
			f.moved += moved
		}
	})
	f.better, f.held = nil, nil
}
