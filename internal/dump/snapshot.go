package dump

import (
	"bytes"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// AddControls adds the operator's settings from a snapshot.
func (w *Writer) AddControls(s storage.Snapshot) error {
	for _, prefix := range [...]string{row.CrawlKey, row.RuleKey, row.UsageKey, row.ValueKey, row.ForgetKey} {
		if err := w.addRows(s, prefix); err != nil {
			return err
		}
	}
	return nil
}

// AddClocks adds the hosts and groups of a snapshot.
func (w *Writer) AddClocks(s storage.Snapshot) error {
	for _, prefix := range [...]string{row.HostKey, row.GroupKey} {
		if err := w.addRows(s, prefix); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) addRows(s storage.Snapshot, prefix string) error {
	return s.Rows(prefix, func(key string, value []byte) error {
		if err := w.Source.Alive(); err != nil {
			return err
		}
		return w.AddRow(key, value, false)
	})
}

// finished records which records of a snapshot are obsolete.
type finished struct {
	dead     map[uint32][]byte       // of blocks, by position
	first    uint64                  // sequence number of the log's first record
	log      []uint64                // bits, from first on
	outdated map[storage.Mark]uint64 // of these URLs records before that number
}

func (d *finished) inBlock(block uint32, pos int) bool {
	b := d.dead[block]
	return pos/8 < len(b) && b[pos/8]&(1<<(pos%8)) != 0
}

func (d *finished) inLog(seq uint64) bool {
	i := seq - d.first
	return i/64 < uint64(len(d.log)) && d.log[i/64]&(1<<(i%64)) != 0
}

// finish records a completion from the log.
func (d *finished) finish(c *storage.Completion) {
	if i := c.Seq - d.first; c.Seq >= d.first && i/64 < uint64(len(d.log)) {
		d.log[i/64] |= 1 << (i % 64)
	}
	if c.Block == 0 {
		return
	}
	b := d.dead[c.Block]
	if n := int(c.Pos)/8 + 1 - len(b); n > 0 {
		b = append(b, make([]byte, n)...)
	}
	b[c.Pos/8] |= 1 << (c.Pos % 8)
	d.dead[c.Block] = b
}

// readFinished collects the finished records, and calls mark with the marks of the log.
func readFinished(s storage.Snapshot, from Source, mark func(storage.Mark)) (*finished, error) {
	d := &finished{dead: map[uint32][]byte{}, outdated: map[storage.Mark]uint64{}}
	err := s.Dead(func(block uint32, bits []byte) error {
		d.dead[block] = bytes.Clone(bits)
		return from.Alive()
	})
	if err != nil {
		return nil, err
	}
	err = s.Rows(row.OutdatedKey, func(key string, value []byte) error {
		o, err := row.ParseOutdated(key, value)
		if err != nil {
			return err
		}
		d.outdated[o.Mark] = o.Seq
		return from.Alive()
	})
	if err != nil {
		return nil, err
	}
	if err := s.Rows(row.DeletionKey, from.Delete); err != nil {
		return nil, err
	}
	if err := s.Rows(row.ForgetKey, from.Forgot); err != nil {
		return nil, err
	}
	err = s.Batches(func(b *storage.Batch) error { // a record is admitted before it is finished
		for i := range b.Admit {
			seq := b.Admit[i].Seq
			if len(d.log) == 0 {
				d.first = seq
			}
			for uint64(len(d.log))*64 <= seq-min(seq, d.first) {
				d.log = append(d.log, 0)
			}
			if b.Admit[i].HasMark {
				mark(b.Admit[i].Mark)
			}
		}
		for _, m := range b.Marks {
			mark(m)
		}
		for i := range b.Finish {
			d.finish(&b.Finish[i])
		}
		return from.Alive()
	})
	return d, err
}

// AddURLs adds the unfinished URLs of a snapshot, and the marks of its log.
func (w *Writer) AddURLs(s storage.Snapshot) error {
	return EachURL(s, w.Source, w.AddMark, w.AddURL)
}

// EachURL calls mark with the marks of a snapshot's log, and then fn with the bodies of its
// unfinished records, in the order of storage. due is 0 if the URL waits and was never scheduled.
func EachURL(s storage.Snapshot, from Source, mark func(storage.Mark), fn func(q *storage.Queue, due int64, body []byte) error) error {
	d, err := readFinished(s, from, mark)
	if err != nil {
		return err
	}
	add := func(q *storage.Queue, r *storage.Record, timed bool) error {
		if from.Deleted(q, r.Seq) {
			return nil
		}
		if err := from.Alive(); err != nil {
			return err
		}
		if !timed {
			return fn(q, 0, r.Body)
		}
		if len(d.outdated) > 0 {
			m, err := from.Mark(q, r.Body)
			if err != nil {
				return &storage.CorruptError{Err: err}
			}
			if r.Seq < d.outdated[m] { // a Force replaced it
				return nil
			}
		}
		return fn(q, r.Due, r.Body)
	}
	err = s.Records(func(block uint32, pos int, r *storage.TimedRecord) error {
		if d.inBlock(block, pos) {
			return nil
		}
		return add(&r.Queue, &r.Record, false)
	})
	if err != nil {
		return err
	}
	err = s.Timed(func(block uint32, pos int, r *storage.TimedRecord) error {
		if d.inBlock(block, pos) {
			return nil
		}
		return add(&r.Queue, &r.Record, true)
	})
	if err != nil {
		return err
	}
	return s.Batches(func(b *storage.Batch) error {
		for i := range b.Admit {
			a := &b.Admit[i]
			if d.inLog(a.Seq) {
				continue
			}
			if err := add(&a.Queue, &a.Record, a.Due != 0); err != nil {
				return err
			}
		}
		return nil
	})
}
