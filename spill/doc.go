// Package spill keeps a frontier on disk, in one badger folder.
//
//	db, err := spill.Open(dir, spill.Options{})
//	...
//	f, err := frontier.Open(ctx, frontier.Options{Spill: db})
//
// Whoever opens a Store closes it, after the frontier.
//
// # What is guaranteed
//
// A batch whose Commit returned survives the death of the process, and with
// Options.Sync the loss of power too. It is there wholly or not at all.
// Without Sync a loss of power costs the latest batches: at most those since the
// last checkpoint, usually those of half a minute. What is there then is what was
// there at one moment, and the store opens as after a crash; the Logger hears what
// was cut off. Each checkpoint, and each merge, brings to the medium what replaces
// something before that goes.
//
// A Commit that returned an error is taken back at once, and if that fails again
// by the next one that succeeds, or by Release. It can only come back if its
// write reached the disk, its confirmation failed, and so did each taking back
// until the process died or released the store.
//
// Damaged data is reported as a *storage.CorruptError that names the store key
// or the file, and is left in place: by Open for the engine's tables and logs,
// which are verified before the engine sees them, by Recover for the log, what
// blocks say of themselves, and an end of the log that is missing, by Load for what
// blocks hold. What died with a process between two transactions is no damage; nor
// can damage to its last transaction always be told from death in the middle of it.
// Repair salvages what can be read into a new folder.
//
// # What is stored
//
// The log has one compressed value per batch. Blocks of about 4 KB hold the
// records that left the log, several queues in one. Timed blocks of about 12 KB
// before compression hold those that are not due yet, in order of time, and have
// a head each, so that reopening does not read them. Every such key starts with
// the number of the generation that wrote it, so that a compaction of one
// generation leaves the others alone. Package keys has the keys; blocks and journal
// have the values.
//
// The log and the blocks lie in files of their own, in the folder "blobs": badger
// has their keys, which point there, and small values. The log is written once,
// a block once or twice. A goroutine of the store gives space back whenever a
// file holds 1 MiB or more of no use: files without anything of use are removed,
// and blocks that are left of files of which a third is of no use are moved
// together first. It needs no checkpoint. It works in steps that hold callers up
// for about a millisecond, with pauses of 5 ms. internal/kv has the details.
//
// Marks lie in files of their own, in the folder "marks" beside badger's files:
// each checkpoint writes one, sorted, and merges in the background make few large
// ones of them. Known finds a mark with about one read of 4 KiB, and tells one
// that is new mostly by filters in memory, of 15 bits per mark. These have half of
// Options.MemoryBudget, and are folded to a quarter of their size before they
// take more. A mark takes 14 bytes of disk, and as many again while it is merged.
// internal/marks has the layout.
//
// The folder of the store as a whole is what to back up: while a frontier has the
// store by [Store.CopyTo], otherwise with any tool.
package spill
