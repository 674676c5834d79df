// Package storage is the contract between a frontier and its disk: what a Spill must do,
// what must be atomic, and in which terms the two speak. Package spill keeps it on badger;
// another Spill needs this package only.
//
// A Spill knows URLs only as opaque bodies in numbered records, and hosts only as
// keys. The frontier owns the encoding of both, the Spill their layout on disk.
package storage

import "context"

const (
	// MaxPart is how many records one part of a block holds at most.
	MaxPart = 32
	// MaxTimed is how many records one timed block holds at most.
	MaxTimed = 512
)

// Mark is the keyed fingerprint that remembers a URL for ever: 96 bits of
// SipHash-2-4-128 under a key that is kept with the store.
type Mark [12]byte

// Spill makes a frontier durable and larger than memory. Package spill has the
// one for production, on badger.
//
// A Spill keeps four things: a log of commits; blocks, which hold records that
// left the log, sorted by host, or by time if they are not due yet; marks; and
// rows, a few small values under names of the frontier's own.
// A record is named by its sequence number, which is never used twice. Blocks
// and marks written ahead of a checkpoint are not part of the state until
// Checkpoint has returned; Recover drops those of an interrupted one.
//
// Recover, Commit and Checkpoint are called by one goroutine at a time; Pack,
// PackTimed and PackMarks by one goroutine, Load, LoadTimed, Known and Row by any
// number, beside the others.
type Spill interface {
	// Recover takes the store into use and replays its state into r, in the
	// order of r's methods. It fails with ErrInUse while another frontier has
	// the store, and with a *CorruptError where stored data cannot be read. An
	// error leaves the store free, or to the frontier that has it: Release must not
	// follow.
	Recover(ctx context.Context, r Recovery) error

	// Commit makes b durable, wholly or not at all, before it returns. A batch
	// whose Commit failed never becomes part of the state, whatever reached the
	// disk. It does not keep b or anything in it.
	Commit(b *Batch) error

	// Pack writes the records of runs into new blocks of generation gen, and
	// tells for each run, in order, the parts that now hold its records, in
	// order: the parts of run i are result[i]. Several runs share a block. A
	// part holds records of one run only, at most MaxPart of them. Runs come
	// sorted by priority and host as far as the caller can. After an error no
	// block of this call belongs to the generation; those of earlier calls do.
	Pack(gen uint32, runs []Run) ([][]Part, error)

	// PackTimed writes records, which are sorted by Due, into new blocks of
	// generation gen that hold nothing else. It tells the blocks in order; each
	// holds as many of the records as it says, in order from position 0 on. Errors
	// are as those of Pack.
	PackTimed(gen uint32, records []TimedRecord) ([]TimedBlock, error)

	// PackMarks writes the marks of the admissions that the checkpoint of
	// generation gen covers, in place of any that it wrote for gen before. It may
	// reorder ms.
	PackMarks(gen uint32, ms []Mark) error

	// Load reads records of part p whose bit is set in want (bit i is the
	// part's i-th record) and calls fn with each, in order. fn must not keep
	// body. A damaged block is a *CorruptError and is left in place. Of a timed
	// block any range of positions may be named as a part.
	Load(p Part, want uint32, fn func(i int, r Record)) error

	// LoadTimed reads the records of a timed block from position from on, and
	// calls fn with each, in order, until it returns false. fn must not keep
	// body. Errors are those of Load.
	LoadTimed(block uint32, from int, fn func(pos int, r TimedRecord) bool) error

	// Known sets known[i] for each ms[i] that is among the marks of completed
	// checkpoints, and leaves the others. It may be called by any number of
	// goroutines, beside everything else.
	Known(ms []Mark, known []bool) error

	// Recall calls fn with marks of completed checkpoints, in any order and
	// grouping, until fn returns false or there are no more. fn must not keep ms.
	// It may be called beside everything else.
	Recall(fn func(ms []Mark) bool) error

	// Row reads one row as of the last batch whose Commit returned. The value is
	// the caller's. Any number of goroutines may call it, beside everything else.
	Row(key string) (value []byte, found bool, err error)

	// Snapshot returns the state as of the last batch whose Commit returned, or of
	// one that is under way. It may be called, and its result be used, beside
	// everything else, by any number of goroutines.
	Snapshot() (Snapshot, error)

	// Checkpoint makes the blocks and marks of generation c.Gen part of the
	// state and ends the log at c.Through: what was committed up to there need
	// not be replayed any more.
	Checkpoint(c *Checkpoint) error

	// Footprint is how many bytes of memory the store takes now, at most, until
	// the next checkpoint. The frontier subtracts it from its MemoryBudget.
	Footprint() int64

	// Release ends the use that Recover began, and that of all snapshots. It does
	// not close the store.
	Release() error
}

// Snapshot is what a Spill held at one moment. It can be read while the Spill goes
// on; until Release the Spill cannot give the space back of what it holds.
//
// The methods tell everything of one kind, in the order of Recovery, and may be
// called in any order and several times. Arguments are valid only during the call.
// An error of fn ends a method, which returns it. Damaged data is a *CorruptError,
// which ends the method too.
type Snapshot interface {
	// Dead gives the finished positions of blocks, as Recovery.Dead does. What
	// Batches tells of later completions comes on top.
	Dead(fn func(block uint32, bits []byte) error) error
	// Records reads all blocks but timed ones: each record with its block and
	// position, finished ones too. Records of a queue come in the order in which
	// they were packed.
	Records(fn func(block uint32, pos int, r *TimedRecord) error) error
	// Timed is Records for the timed blocks.
	Timed(fn func(block uint32, pos int, r *TimedRecord) error) error
	// Batches gives the batches after the last checkpoint, in order.
	Batches(fn func(b *Batch) error) error
	// Rows gives the rows whose keys begin with prefix, in order of their keys.
	Rows(prefix string, fn func(key string, value []byte) error) error
	// Marks gives the marks of completed checkpoints, ascending, each once.
	Marks(fn func(ms []Mark) error) error
	// Release ends the use of the snapshot. A second call does nothing.
	Release()
}

// Recovery receives what a Spill holds. Recover calls the methods in the order
// in which they are listed here. Arguments are valid only during the call. An
// error ends Recover, which returns it.
type Recovery interface {
	// Begin comes before everything. Until Recover returns, row reads one row as
	// Spill.Row does afterwards.
	Begin(row func(key string) (value []byte, found bool, err error)) error
	// Marks tells how many fingerprints of URLs are known: those of completed
	// checkpoints.
	Marks(n int64) error
	// Dead gives the positions of a block whose records are finished, as of
	// the last checkpoint: bit i%8 of bits[i/8] is the record at position i.
	Dead(block uint32, bits []byte) error
	// Part gives a part of a block with the queue whose records it holds.
	// Parts of a queue come in the order in which they were packed.
	Part(q Queue, p Part) error
	// Timed gives a timed block, in the order in which they were packed.
	Timed(b TimedBlock) error
	// Batch gives one committed batch after the last checkpoint, in order.
	Batch(b *Batch) error
	// Row gives one row as of the last batch. Rows come in order of their keys.
	Row(key string, value []byte) error
}

// Queue names the FIFO that a record waits in.
type Queue struct {
	Host     string // host key, 1 to 255 bytes
	Crawl    uint32
	Priority uint8
}

// Record is a URL as the store sees it.
type Record struct {
	Seq  uint64 // order of admission; unique for ever, below 1<<48
	Due  int64  // Unix milliseconds before which it is not waiting; 0: waiting at once
	Body []byte // the frontier's encoding
}

// Admission is a record that joins, with its queue and, if it is the first of
// its URL, the mark that remembers it.
type Admission struct {
	Queue
	Record
	Mark    Mark
	HasMark bool
}

// Part is a range of positions of one block that holds consecutive records of
// one queue.
type Part struct {
	Block uint32 // numbered from 1, never used twice
	First uint16 // position in the block of the part's first record
	Count uint8  // 1 to MaxPart
}

// Completion tells that a record is finished: it must not come back.
type Completion struct {
	Seq uint64
	// Block and Pos tell where the record lies if the frontier knew it in a
	// block (Block is 0 if in the log). If that block is of a checkpoint that
	// never completed, the record is still in the log under Seq.
	Block uint32
	Pos   uint16
}

// Row is a small value under a name of the frontier's own, for instance a host's
// learned delay. A nil Value deletes the row.
type Row struct {
	Key   string
	Value []byte
}

// Batch is what becomes durable together.
type Batch struct {
	ID     uint64 // ascending, from the last recovered one + 1
	Time   int64  // Unix milliseconds
	Admit  []Admission
	Finish []Completion
	Rows   []Row
	Drop   []uint32 // blocks whose last record is finished; their space may be freed
	Marks  []Mark   // of URLs that become known without a record
}

// Run is a queue's share of a move: consecutive records on their way to blocks.
type Run struct {
	Queue
	Records []Record
}

// TimedRecord is a record that waits for its time, with the queue that it joins
// then.
type TimedRecord struct {
	Queue
	Record
}

// TimedBlock is what must be known of a timed block before it is read.
type TimedBlock struct {
	Block    uint32
	Count    int   // its records, at most MaxTimed
	Due      int64 // of the first of them, which is the earliest
	Priority uint8 // highest of them
}

// DeadBits are the finished positions of one block.
type DeadBits struct {
	Block uint32
	Bits  []byte // as in Recovery.Dead
}

// Checkpoint ends a round of moving records from the log to blocks.
type Checkpoint struct {
	Gen     uint32     // generation of the blocks that Pack wrote in this round
	Through uint64     // ID of the last batch whose records are all in blocks now, or finished
	Dead    []DeadBits // blocks whose finished positions changed since the last checkpoint
}
