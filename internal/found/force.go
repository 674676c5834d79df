// This file re-admits a known URL: it looks for the one that waits, wherever it
// is, and puts the new one in its place.
//
// There is no index of URLs. To find one, the waiting URLs of its host are read block by block, outside
// the lock. A scheduled URL on disk is not searched for, since no index says which timed block has it,
// or whether one has. So a Force admits the new record and, in the same commit, leaves a note: older
// records of this URL are outdated. A reader of a timed block finishes an outdated record without
// handing it out. The note is dropped when all blocks of that time have been searched or read. They are
// searched at once while they are few, when new notes are many for their number, and when only outdated
// records could keep the crawl going.

package found

import (
	"context"
	"errors"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/storage"
)

// ErrForgotten is why a URL cannot be forced: it became unknown.
var ErrForgotten = errors.New("forgotten")

// wasForgotten reports whether the URL of e became unknown since e was prepared.
func (f *Found) wasForgotten(e *ledger.Entry, url []byte) bool {
	return f.Forgotten.Version() != 0 && f.Mark(e.Host, e.Crawl, hostkey.String(url)) != e.Mark
}

// forgottenUntil returns the last sequence number of a host's URLs of a crawl that was forgotten, for
// URLs that wait: those of before a reopening may not have been swept yet.
func (f *Found) forgottenUntil(host string, crawl uint32) uint64 {
	if f.Forgotten.Of(host, crawl) == 0 {
		return 0
	}
	return max(f.Forgotten.Until(host, crawl), f.Core.Deletions.Stored.Of(hostkey.Bytes(host), crawl).Seq)
}

// Force admits e, which is known, and ends its waiting record. If the URL has become
// unknown it returns ErrForgotten.
func (f *Found) Force(ctx context.Context, e ledger.Entry) error {
	b, err := record.Decode(e.Body)
	if err != nil {
		return err
	}
	if err := f.beginForce(ctx, e.Mark); err != nil {
		return err
	}
	defer f.endForce(e.Mark)
	for {
		if err := f.up.LockWithHost(ctx, e.Host); err != nil {
			return err
		}
		if f.wasForgotten(&e, b.URL) {
			f.Mu.Unlock()
			return ErrForgotten
		}
		id := f.Core.Lookup(e.Hash, e.Host)
		o := &ledger.Op{Context: ctx}
		if id != 0 && f.forceLeased(o, id, &e, b.URL) {
			return f.Ledger.SubmitAndUnlock(o)
		}
		if id != 0 && f.Core.Hosts.At(id).Pins > 0 { // perhaps this URL is on its way to disk
			if err := f.Ledger.SubmitAndUnlock(o); err != nil { // it returns when what is on its way has arrived
				return err
			}
			continue
		}
		own := e // the caller's buffer may go before the commit does
		own.Body = o.Keep(e.Body)
		o.Entries = append(o.Entries, own)
		if id != 0 && !f.takeOut(o, id, &e, b.URL) {
			if parts := view.PartsOf(f.Core, id, e.Crawl); len(parts) > 0 {
				f.Mu.Unlock()
				again, err := f.takeFromDisk(ctx, o, parts, &e, b.URL)
				if again || err != nil {
					if err == nil {
						err = ctx.Err()
					}
					if err != nil {
						return err
					}
					continue
				}
				f.Mu.Lock()
				if f.wasForgotten(&e, b.URL) {
					f.Ledger.Undo(o) // what it took waits again
					f.Mu.Unlock()
					return ErrForgotten
				}
				if !o.Ends && f.Core.Lookup(e.Hash, e.Host) != id { // it left memory meanwhile
					f.Mu.Unlock()
					continue
				}
			}
		}
		if !o.Ends && !f.Core.Timed.Empty() {
			o.NoteBlock = f.Core.Timed.Last()
		}
		return f.Ledger.SubmitAndUnlock(o)
	}
}

// forceLeased makes a lease's URL come again after its Done, if e is of it. With a Spill o
// becomes what makes that durable.
func (f *Found) forceLeased(o *ledger.Op, id uint32, e *ledger.Entry, url []byte) bool {
	l := f.Core.Search(id, e.Crawl, url, f.Forgotten.Until(e.Host, e.Crawl)).Lease()
	if l == nil {
		return false
	}
	again := *e
	again.Index, again.Marked, again.ForcedAt = -1, false, f.Ledger.Seq()
	again.Body = append([]byte(nil), e.Body...)
	seq := f.Core.Records.At(l.Record).Seq()
	undo := f.Ledger.ComesAgain(seq, &again)
	if f.Spill == nil {
		return true
	}
	r := row.Again{Seq: seq, Host: e.Host, Crawl: e.Crawl, Priority: e.Priority, Forced: again.ForcedAt, Body: string(e.Body)}
	if e.Due != 0 {
		r.Due = f.Core.Clock.DueMillis(e.Due)
	}
	o.Rows = append(o.Rows, r.Row())
	o.Unrule = undo
	return true
}

// ComesAgain restores what records come again as.
func (f *Found) ComesAgain(all []row.Again) {
	for i := range all {
		a := &all[i]
		b := record.Must([]byte(a.Body))
		e := &ledger.Entry{
			Index: -1, Hash: f.Core.HashOf(a.Host), Host: a.Host, Crawl: a.Crawl, Priority: a.Priority, Force: true,
			ForcedAt: a.Forced, Body: []byte(a.Body), Mark: f.Mark(a.Host, a.Crawl, string(b.URL)),
		}
		if a.Due != 0 {
			e.Due = f.Core.Clock.StoredDue(a.Due)
		}
		f.Ledger.ComesAgain(a.Seq, e)
	}
}

// takeOut looks for the URL among the host's records in memory, and makes
// o the end of the one it finds.
func (f *Found) takeOut(o *ledger.Op, id uint32, e *ledger.Entry, url []byte) bool {
	c := f.Core
	search := c.Search(id, e.Crawl, url, f.forgottenUntil(e.Host, e.Crawl))
	if queue, at, ok := search.Waiting(); ok {
		f.Ledger.Withdraw(o, queue, at.Ref, func() { c.Fifo.Remove(at) })
		return true
	}
	i, ok := search.Scheduled()
	if ok {
		f.Ledger.Unschedule(o, i)
	}
	return ok
}

// takeFromDisk looks for the URL in parts on disk. If it finds it, o becomes the end of
// its record. If the record was taken meanwhile, the search must begin again.
func (f *Found) takeFromDisk(ctx context.Context, o *ledger.Op, parts []view.Part, e *ledger.Entry, url []byte) (again bool, err error) {
	for i := range parts {
		p := &parts[i]
		records, err := f.up.Load(ctx, p.Part, p.Want)
		if err != nil {
			return false, err
		}
		for i := range records {
			r := &records[i]
			if !record.HasURL(r.Body, url) {
				continue
			}
			f.Mu.Lock()
			if r.Seq <= f.forgottenUntil(e.Host, e.Crawl) {
				f.Mu.Unlock()
				continue
			}
			defer f.Mu.Unlock()
			ref, ok := f.Core.Fifo.Fetch(p.ID, p.Part, r)
			if ok {
				f.Ledger.Withdraw(o, p.Queue, ref, func() {})
			}
			return !ok, nil
		}
	}
	return false, nil
}

// beginForce waits until no other call forces the URL: neither would see the
// other's record, which is on its way to disk.
func (f *Found) beginForce(ctx context.Context, m storage.Mark) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for f.forcing[m] != nil {
		other := f.forcing[m]
		f.Mu.Unlock()
		_, err := patience.Ask(ctx, f.Life, func() (struct{}, error) { return <-other, nil })
		f.Mu.Lock()
		if err != nil {
			return err
		}
	}
	f.forcing[m] = make(chan struct{})
	return nil
}

func (f *Found) endForce(m storage.Mark) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	close(f.forcing[m])
	delete(f.forcing, m)
}

// AwaitForcesYielding waits until no URL of the records is being forced: only then
// it is clear whether its record is superseded. It releases the lock meanwhile.
func (f *Found) AwaitForcesYielding(records []timed.Loaded) {
	for i := 0; i < len(records) && len(f.forcing) > 0; i++ {
		if busy := f.forcing[records[i].Mark]; busy != nil {
			f.Mu.Unlock()
			<-busy
			f.Mu.Lock()
			i = -1 // others may have begun
		}
	}
}

// Superseded reports whether a Force has replaced a record.
func (f *Found) Superseded(r *timed.Loaded) bool { return f.Notes.Outdated(r.Mark, r.Seq) }
