// This file gives the tests in package frontier_test access to internals.

package frontier

import (
	"context"

	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/internal/view"
)

// Homeless returns how many bytes of records in memory have no home in a block.
func (f *Frontier) Homeless() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Records.Homeless()
}

// Looked returns how many records of queues rounds of moving have looked at.
func (f *Frontier) Looked() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Moves.Looked()
}

// WalkURLs lists what waits of a host, with steps so short, and calls between
// without the lock after each of them.
func (f *Frontier) WalkURLs(host string, steps int, between func()) (urls []string, err error) {
	l := urlListing{f: f, ctx: context.Background()}
	f.mu.Lock()
	w := view.Begin(f.core, host, 0)
	for f.core.Fifo.Step(w.Walk, steps) {
		f.mu.Unlock()
		between()
		f.mu.Lock()
	}
	f.core.EndWalk(w.Walk)
	f.mu.Unlock()
	between()
	if err := w.Read(&f.urlRanges, l.load); err != nil {
		return nil, err
	}
	w.Cut()
	between()
	if err := l.drop(w); err != nil {
		return nil, err
	}
	for _, x := range w.Items {
		b, err := record.Decode(x.Body)
		if err != nil {
			return nil, err
		}
		urls = append(urls, string(b.URL))
	}
	return urls, nil
}

// Deletions is how many deletions are kept on disk.
func (f *Frontier) Deletions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Deletions.Stored.Len()
}

// DeleteUnswept puts the deletion of a scope in force, and leaves it to hand-outs to find
// what is dead until sweep is called.
func (f *Frontier) DeleteUnswept(s Scope) (sweep func()) {
	return f.deleteUnswept(tombstone.NewDeletion(row.Deletion{Scope: s.stored()}))
}

// LayAside leaves a host to a sweep, as a hand-out does that finds its next URL dead.
func (f *Frontier) LayAside(host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.core.Lookup(f.core.HashOf(host), host)
	f.core.Detach(id)
	f.core.Put(f.core.Hosts.At(id), mercator.Unpurged)
}

// DeleteCrawlUnswept is DeleteUnswept for a crawl.
func (f *Frontier) DeleteCrawlUnswept(id uint32) (sweep func()) {
	return f.deleteUnswept(tombstone.NewDeletion(row.Deletion{OfCrawl: true, Crawl: id}))
}

func (f *Frontier) deleteUnswept(d *tombstone.Deletion) (sweep func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.numberLocked(&op{deletion: d})
	f.core.Deletions.InForce.Add(&d.Tombstone)
	f.core.OfferDeleted(&d.Tombstone)
	return func() { f.sweep(d) }
}
