// Package spill keeps a frontier on disk, in one badger folder.
//
//	db, err := spill.Open(dir, spill.Options{})
//	...
//	f, err := frontier.Open(ctx, frontier.Options{Spill: db})
//
// The caller of Open closes the Store, after the frontier.
//
// # Guarantees
//
// A batch whose Commit returned survives the death of the process and, with Options.Sync, a loss of
// power. It is stored completely or not at all. Without Sync, a loss of power costs the latest
// batches: at most those since the last checkpoint, usually those of half a minute. The store then
// opens as after a crash, in the state of one earlier moment, and the Logger receives what was cut
// off. Each checkpoint and each merge syncs new data to the medium before it deletes the data that
// it replaces, and the note of what the medium has before a file is removed. An opening that fails
// cuts and deletes nothing.
//
// If Commit returns an error, the batch is reverted at once; if that fails too, by the next Commit
// that succeeds, or by Release. Such a batch can reappear only if its write reached the disk, the
// confirmation failed, and so did every attempt to revert it until the process died or released the
// store.
//
// Damaged data is reported as a *storage.CorruptError with the store key or the file, and left in
// place. Open verifies the engine's tables and logs before the engine reads them; Recover reports
// damage to the log, a missing end of the log, and damage to the headers of blocks; Load reports
// damage to the contents of blocks. Data lost with a process that died between two transactions is
// not damage, and damage to the last transaction cannot always be distinguished from a process that
// died in the middle of it. Repair salvages the readable data into a new folder.
//
// # Storage layout
//
// The log has one compressed value per batch. Records that left the log are in blocks of about 4
// KB, several queues in one. Records that are not due yet are in timed blocks of about 12 KB before
// compression, in order of time; each timed block has a separate head, so that reopening need not
// read the block. Every key of these kinds starts with the number of the generation that wrote it,
// so that compacting one generation does not touch the others. Package keys defines the keys;
// packages blocks and journal define the values.
//
// The log and the blocks are in separate files, in the folder "blobs": badger holds their keys,
// which point there, and small values. The log is written once, a block once or twice. A goroutine
// of the store reclaims space when a file holds 1 MiB or more of obsolete data: it removes files
// that are entirely obsolete, after moving together the blocks that remain in files that are at
// least a third obsolete. It does not depend on checkpoints. It works in steps that delay callers
// by about a millisecond, with pauses of 5 ms. internal/kv has the details.
//
// Marks are in files in the folder "marks", beside badger's files: each checkpoint writes one
// sorted file, and background merges keep their number small. Known finds a known mark with about
// one read of 4 KiB; filters in memory, of 15 bits per mark, recognize most new marks without a
// read. The filters may use half of Options.MemoryBudget, and are folded to a quarter of their size
// before they take more. A mark takes 14 bytes of disk, and another 14 while it is merged.
// internal/marks has the layout.
//
// Back up the folder as a whole: with [Store.CopyTo] while a frontier uses the store, otherwise
// with any tool.
package spill
