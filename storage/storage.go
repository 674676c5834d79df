// Package storage defines the contract between a frontier and its disk: what a Spill must do, which
// changes must be atomic, and the types that they exchange. Package spill implements it on badger;
// another implementation needs only this package.
//
// A Spill treats URLs as opaque bodies in numbered records, and hosts as keys. The frontier defines
// the encoding of both, the Spill their layout on disk.
package storage

import "context"

const (
	// MaxPart is the maximum number of records in one part of a block.
	MaxPart = 32
	// MaxTimed is the maximum number of records in one timed block.
	MaxTimed = 512
	// ManyRows is what the keys of those rows begin with that may be as many as there are hosts. No
	// opening reads them all.
	ManyRows = "q:"
)

// Mark is the keyed fingerprint by which a URL is remembered forever: 96 bits of SipHash-2-4-128
// under a key that is stored with the frontier.
type Mark [12]byte

// Spill makes a frontier durable and larger than memory. Package spill provides the production
// implementation, on badger.
//
// A Spill keeps a log of commits, blocks, marks and rows. Blocks hold records that have been moved
// out of the log, sorted by host, or by time if they are scheduled for later. Rows are small values
// under keys that the frontier chooses. A record is identified by its sequence number, which is
// never reused. Blocks and marks that are written ahead of a checkpoint become part of the state
// only when Checkpoint has returned; Recover drops those of an interrupted checkpoint.
//
// The frontier calls Recover, Commit and Checkpoint from one goroutine at a time, and Pack,
// PackTimed and PackMarks from one goroutine. Load, LoadTimed, Known and Row may be called from any
// number of goroutines, concurrently with the others.
type Spill interface {
	// Recover starts using the store and replays its state into r, in the order of r's methods. It
	// returns ErrInUse while another frontier uses the store, and a *CorruptError if stored data
	// cannot be read. After an error this caller does not use the store and must not call Release.
	Recover(ctx context.Context, r Recovery) error

	// Commit makes b durable before it returns, completely or not at all. A batch whose Commit
	// failed never becomes part of the state, whatever reached the disk. Commit does not keep b or
	// anything in it.
	Commit(b *Batch) error

	// Pack writes the records of runs into new blocks of generation gen. result[i] lists, in order,
	// the parts that hold the records of runs[i]. Several runs share a block. A part holds at most
	// MaxPart records, all of one run. The caller sorts runs by priority and host as far as it can.
	// After an error the generation contains no block of this call; blocks of earlier calls remain.
	Pack(gen uint32, runs []Run) ([][]Part, error)

	// PackTimed writes records, sorted by Due, into new blocks of generation gen that hold nothing
	// else. It returns the blocks in order: the first holds the first Count records, from position
	// 0, and so on. Errors have the same effect as for Pack.
	PackTimed(gen uint32, records []TimedRecord) ([]TimedBlock, error)

	// PackMarks writes the marks of the admissions that the checkpoint of generation gen covers.
	// They replace all marks written for gen before. It may reorder ms.
	PackMarks(gen uint32, ms []Mark) error

	// Load reads the records of part p whose bit is set in want (bit i stands for record i of the
	// part) and calls fn with each, in order. fn must not keep body. A damaged block is reported as
	// a *CorruptError and left in place. p may be any range of positions of a timed block.
	Load(p Part, want uint32, fn func(i int, r Record)) error

	// LoadTimed reads the records of a timed block, starting at position from, and calls fn with
	// each, in order, until fn returns false. fn must not keep body. Errors are those of Load.
	LoadTimed(block uint32, from int, fn func(pos int, r TimedRecord) bool) error

	// Known sets known[i] for each ms[i] that is among the marks of completed checkpoints, and
	// leaves the other elements unchanged. It may be called from any number of goroutines,
	// concurrently with everything else.
	Known(ms []Mark, known []bool) error

	// Recall calls fn with marks of completed checkpoints, in any order and in groups of any size,
	// until fn returns false or no marks are left. fn must not keep ms. Recall may be called
	// concurrently with everything else.
	Recall(fn func(ms []Mark) bool) error

	// Row reads one row as of the last batch whose Commit returned. The caller owns the value. It
	// may be called from any number of goroutines, concurrently with everything else.
	Row(key string) (value []byte, found bool, err error)

	// Rows calls fn with the rows whose keys begin with prefix and are not before from, in key
	// order, until fn returns false. It reads no more of the others than the engine's pages have.
	// fn must not keep value. Rows may be called from any number of goroutines, concurrently with
	// everything else; a row that a Commit changes meanwhile is reported before or after that.
	Rows(prefix, from string, fn func(key string, value []byte) bool) error

	// Snapshot returns the state as of the last batch whose Commit returned, or as of a batch that
	// is being committed. Snapshot and the methods of its result may be called from any number of
	// goroutines, concurrently with everything else.
	Snapshot() (Snapshot, error)

	// Checkpoint makes the blocks and marks of generation c.Gen part of the state and ends the log
	// at c.Through: batches up to that one need not be replayed.
	Checkpoint(c *Checkpoint) error

	// Footprint returns an upper bound, in bytes, of the memory that the store takes until the next
	// checkpoint. The frontier subtracts it from its MemoryBudget. It may be called at any time, and
	// asks again before it refuses a URL: the bound may fall when what a checkpoint began is over.
	Footprint() int64

	// Release ends the use that Recover began, and releases all snapshots. It does not close the
	// store.
	Release() error
}

// Peeker is a Spill that knows whether it must wait for the disk.
type Peeker interface {
	// Peek is Load if the records can be had without waiting for the disk, and reports that.
	// Otherwise, or if there is an error, it returns false at once, and what fn has got does not
	// count: Load has the records or the error.
	Peek(p Part, want uint32, fn func(i int, r Record)) bool
}

// Snapshot is the state of a Spill at one moment. The Spill can be used while a snapshot is read,
// but it cannot free the space of what the snapshot holds until Release.
//
// Each method reports everything of one kind, in the order of Recovery. Methods may be called in
// any order and repeatedly. Arguments of fn are valid only during the call. An error of fn ends the
// method, which returns it. Damaged data ends the method with a *CorruptError.
type Snapshot interface {
	// Dead reports the finished positions of blocks, like Recovery.Dead. Later completions are in
	// Batches.
	Dead(fn func(block uint32, bits []byte) error) error
	// Records reports the records of all blocks except timed ones, each with its block and
	// position, including finished records. Records of a queue come in the order in which they were
	// packed.
	Records(fn func(block uint32, pos int, r *TimedRecord) error) error
	// Timed is Records for timed blocks.
	Timed(fn func(block uint32, pos int, r *TimedRecord) error) error
	// Batches reports the batches after the last checkpoint, in order.
	Batches(fn func(b *Batch) error) error
	// Rows reports the rows whose keys begin with prefix, in key order.
	Rows(prefix string, fn func(key string, value []byte) error) error
	// Marks reports the marks of completed checkpoints, in ascending order, each once.
	Marks(fn func(ms []Mark) error) error
	// Release ends the use of the snapshot. Further calls do nothing.
	Release()
}

// Recovery receives the state of a Spill. Recover calls its methods in the order listed here.
// Arguments are valid only during the call. An error ends Recover, which returns it.
type Recovery interface {
	// Begin is called first. Until Recover returns, row reads one row as Spill.Row does afterwards.
	Begin(row func(key string) (value []byte, found bool, err error)) error
	// Marks reports the number of known URLs: the marks of completed checkpoints.
	Marks(n int64) error
	// Dead reports the positions of a block whose records were finished at the last checkpoint: bit
	// i%8 of bits[i/8] stands for the record at position i.
	Dead(block uint32, bits []byte) error
	// Part reports a part of a block and the queue of its records. Parts of a queue come in the
	// order in which they were packed.
	Part(q Queue, p Part) error
	// Timed reports a timed block. Timed blocks come in the order in which they were packed.
	Timed(b TimedBlock) error
	// Batch reports one committed batch after the last checkpoint, in order.
	Batch(b *Batch) error
	// Row reports one row as of the last batch. Rows come in key order. Those whose keys begin with
	// ManyRows are not reported.
	Row(key string, value []byte) error
}

// Queue identifies the FIFO in which a record waits.
type Queue struct {
	Host     string // host key, 1 to 255 bytes
	Crawl    uint32
	Priority uint8
}

// Record is a URL as the store sees it.
type Record struct {
	Seq  uint64 // order of admission; never reused, below 1<<48
	Due  int64  // when it starts to wait, in Unix milliseconds; 0: at once
	Body []byte // in the frontier's encoding
}

// Admission is a new record with its queue. If the record is the first of its URL, the admission
// also carries the URL's mark.
type Admission struct {
	Queue
	Record
	Mark    Mark
	HasMark bool
}

// Part is a range of positions in one block that holds consecutive records of one queue.
type Part struct {
	Block uint32 // numbered from 1, never reused
	First uint16 // position in the block of the part's first record
	Count uint8  // 1 to MaxPart
}

// Completion reports that a record is finished: it must not come back.
type Completion struct {
	Seq uint64
	// Block and Pos are where the frontier knows the record to be; Block is 0 if it is in the log.
	// If the block belongs to a checkpoint that never completed, the record is still in the log
	// under Seq.
	Block uint32
	Pos   uint16
}

// Row is a small value under a key that the frontier chooses, such as the learned delay of a host.
// A nil Value deletes the row.
type Row struct {
	Key   string
	Value []byte
}

// Batch is a set of changes that become durable together.
type Batch struct {
	ID     uint64 // ascending by 1, starting after the last recovered one
	Time   int64  // Unix milliseconds
	Admit  []Admission
	Finish []Completion
	Rows   []Row
	Drop   []uint32 // blocks whose records are all finished; their space may be freed
	Marks  []Mark   // marks of URLs that become known without a record
	// Local is set if the batch says nothing of URLs, hosts and settings, but what this store's own
	// checkpoint made true. A Spill that keeps copies of the state elsewhere leaves it out there.
	Local bool
}

// Run is the part of one queue that moves together: consecutive records on their way to blocks.
type Run struct {
	Queue
	Records []Record
}

// TimedRecord is a record that waits for its time, with the queue that it will join.
type TimedRecord struct {
	Queue
	Record
}

// TimedBlock describes a timed block that has not been read.
type TimedBlock struct {
	Block    uint32
	Count    int   // number of records, at most MaxTimed
	Due      int64 // due time of the first record, which is the earliest
	Priority uint8 // highest priority of the records
}

// DeadBits are the finished positions of one block.
type DeadBits struct {
	Block uint32
	Bits  []byte // as for Recovery.Dead
}

// Checkpoint ends a round that moves records from the log to blocks.
type Checkpoint struct {
	Gen     uint32     // generation of the blocks that Pack wrote in this round
	Through uint64     // ID of the last batch whose records are all in blocks or finished
	Dead    []DeadBits // blocks whose finished positions changed since the last checkpoint
}
