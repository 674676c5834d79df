// This file gives the tests in package frontier_test access to internals.

package frontier

import (
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/scope"
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

// Deletions is how many deletions are kept on disk.
func (f *Frontier) Deletions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Deletions.Stored.Len()
}

// DeleteUnswept puts the deletion of a scope in force, and leaves it to hand-outs to find
// what is dead until sweep is called.
func (f *Frontier) DeleteUnswept(s scope.Scope) (sweep func()) {
	return f.deleteUnswept(tombstone.NewDeletion(row.Deletion{Scope: s.Hosts()}))
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
	f.ledger.Number(&ledger.Op{Deletion: d})
	f.core.Deletions.InForce.Add(&d.Tombstone)
	f.core.OfferDeleted(&d.Tombstone)
	return func() { f.sweep(d) }
}
