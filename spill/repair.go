// This file salvages the readable data of a damaged folder into a new one.
//
// Everything keeps its key: block numbers, generations and batches are those of the damaged store,
// so that references to them stay valid. Each value is verified before it is written. repairlog.go
// repairs the log, repairmarks.go the marks of known URLs.

package spill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

// Repaired reports what Repair salvaged and what it could not read.
type Repaired struct {
	Blocks  int   // of URLs, including timed blocks
	Batches int   // of the log
	Rows    int   // what was set and learned: rules, groups, clocks of hosts
	Marks   int64 // of known URLs, without those in the log

	// Lost lists what could not be read, in the order in which it was found.
	Lost []Loss
}

// Loss is something that could not be read.
type Loss struct {
	What string // "file", "block", "timed block", "batch", "row", "finished marks", "state" or "known URLs"
	Key  []byte // store key, unless it is a file
	File string // if it is known
	URLs int    // number of lost URLs; -1 if unknown
	Err  error
}

// String returns what was lost, where, and why.
func (l Loss) String() string {
	name := cmp.Or(l.File, fmt.Sprintf("%x", l.Key))
	urls := "an unknown number of URLs"
	if l.URLs >= 0 {
		urls = fmt.Sprintf("%d URLs", l.URLs)
	}
	return fmt.Sprintf("%s %s with %s: %v", l.What, name, urls, l.Err)
}

// Repair salvages the store in folder from, which must not be in use, into folder to, which must be
// new or empty. It changes nothing in from.
//
// Readable data is copied exactly: URLs with their places in the queues, known URLs, rules, and what
// was learned about hosts. The result is like that of a crash: when it is opened, every host counts as
// just contacted, and leased URLs are handed out again. URLs that were done are handed out again if the
// record of their completion was lost, and URLs whose marks were lost may be admitted once more.
//
// If files of values or marks are missing, values that nothing points to are used as well, if they are
// newer than everything else: then the end of the log is missing. URLs of it that were done, or that come
// again, may be handed out once more.
//
// The error says why nothing, or not everything readable, was salvaged. Damage is not an error; it
// is listed in Repaired. If ctx ends, or a write fails, folder to is incomplete and unusable.
func Repair(ctx context.Context, from, to string, o Options) (*Repaired, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("spill: options: %w", err)
	}
	if names, err := os.ReadDir(to); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("spill: repair: %s is not empty", to)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("spill: repair: %w", err)
	}
	in, err := kv.OpenSalvage(from)
	if err != nil {
		return nil, fmt.Errorf("spill: repair %s: %w", from, openFault(err))
	}
	defer in.Close()
	if err := salvageable(in); err != nil {
		return nil, fmt.Errorf("spill: repair %s: %w", from, err)
	}
	out, err := kv.OpenBadger(to, EngineConfig(o))
	if err != nil {
		return nil, fmt.Errorf("spill: repair: %w", err)
	}
	r := &repair{ctx: ctx, in: in, out: out, opts: o, report: &Repaired{}}
	if err = errors.Join(r.run(), out.Close()); err == nil {
		out, err = kv.OpenBadger(to, EngineConfig(o))
	}
	if err == nil {
		err = recovers(ctx, out, o)
	}
	if err != nil {
		return nil, fmt.Errorf("spill: repair %s: %w", from, err)
	}
	return r.report, nil
}

// repair is one call of Repair.
type repair struct {
	ctx    context.Context
	in     *kv.Salvage
	out    kv.DB
	opts   Options
	report *Repaired
	batch  kv.Batch

	state   state
	guessed bool // the state was reconstructed, not read
	found   recovery
	dropped map[uint32]bool // blocks that the log dropped
	log     []savedBatch
	rows    map[string]rowFate // of the log
	highest uint64             // sequence number
}

// rowFate is the last change of a row in the log.
type rowFate struct{ value []byte }

func (r *repair) run() error {
	for _, d := range r.in.Damage {
		r.lost(Loss{What: "file", File: d.File, URLs: -1, Err: d.Err})
	}
	return inOrder(r.ctx,
		r.stamp, r.readState, r.findStrays, r.readLog, r.copyBlocks, r.copyTimed, r.copyDead, r.copyRows, r.writeLog, r.copyMarks, r.finish,
	)
}

func (r *repair) lost(l Loss) { r.report.Lost = append(r.report.Lost, l) }

// lostValue reports a value.
func (r *repair) lostValue(what string, key []byte, urls int, err error) {
	r.lost(Loss{What: what, Key: append([]byte(nil), key...), URLs: urls, Err: err})
}

// set writes a value, soon.
func (r *repair) set(key, value []byte) error {
	r.batch.Set(append([]byte(nil), key...), append([]byte{}, value...))
	if r.batch.Bytes < chunkBytes && len(r.batch.Ops) < chunkOps/4 {
		return nil
	}
	return r.flush(false)
}

func (r *repair) flush(sync bool) error {
	defer r.batch.Reset()
	for {
		part := kv.Batch{}
		for len(r.batch.Ops) > 0 {
			o := r.batch.Ops[0]
			part.Set(o.Key, o.Value)
			if len(part.Ops) > 1 && !r.out.Fits(&part) {
				part.Ops = part.Ops[:len(part.Ops)-1]
				part.Bytes -= len(o.Key) + len(o.Value)
				break
			}
			r.batch.Ops = r.batch.Ops[1:]
		}
		last := len(r.batch.Ops) == 0
		if err := r.out.Write(&part, sync && last); err != nil || last {
			return err
		}
	}
}

// salvageable refuses a store of another version. If the stamp is lost, the first intact value
// shows the version.
func salvageable(in kv.Reader) error {
	stamped, err := knownVersion(in)
	if stamped && err == nil || errors.Is(err, storage.ErrVersion) {
		return err
	}
	err = in.Iterate([]byte{0}, keys.Prefix(keys.Fixed, keys.KindVersion), func(key []byte, value func() ([]byte, error)) error {
		if v, err := value(); err == nil && len(key) >= keys.HeadLen && keys.Kind(key[keys.HeadLen-1]) != keys.KindRow && wire.Whole(key, v) {
			return cmp.Or(otherVersion(uint64(v[0])), errEnough)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

var errEnough = errors.New("enough is known")

func (r *repair) stamp() error { return checkVersion(r.out) }

// readState determines what is valid: everything, if no state can be read.
func (r *repair) readState() error {
	var err error
	r.state, err = loadState(r.in)
	key := keys.Prefix(keys.Fixed, keys.KindState)
	found, _ := r.in.Get(key, func([]byte) error { return nil })
	if err != nil {
		r.lostValue("state", key, 0, err)
		r.guessed, r.state = true, state{floor: 1, next: 1}
	}
	if !found && len(r.in.Damage) > 0 {
		r.guessed = true
	}
	return r.survey()
}

// survey finds what there is, and with a guessed state makes all of it valid.
func (r *repair) survey() error {
	if r.guessed {
		r.state.adopted = keys.Fixed - 1
	}
	r.found = recovery{db: r.in, ctx: r.ctx, state: r.state, upTo: math.MaxUint64}
	rc := &r.found
	if err := rc.survey(); err != nil {
		return err
	}
	if r.guessed {
		r.state.adopted = 0
		if n := len(rc.gens); n > 0 {
			r.state.adopted = rc.gens[n-1]
		}
	}
	r.state.next = max(r.state.next, rc.next)
	return nil
}

// findStrays gives values back to their keys: those whose files are missing and that lie elsewhere,
// and those that are newer than everything the store knows. If there are newer batches of the log,
// its end is lost, and with it the state.
func (r *repair) findStrays() error {
	last := r.state.through
	names, err := r.in.ListFiles(marks.Folder)
	if err != nil {
		return err
	}
	gone := slices.ContainsFunc(r.state.runs, func(x marks.Ref) bool { return !slices.Contains(names, marks.NameOf(x.ID)) })
	entries, err := r.logEntries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		last = max(last, e.id)
	}
	next, newer := r.state.next, 0
	err = r.in.Strays(gone, func(key, value []byte, lost bool) bool {
		if len(key) <= keys.HeadLen || !wire.Whole(key, value) {
			return false
		}
		switch keys.Kind(key[keys.HeadLen-1]) {
		case keys.KindLog:
			id, _, ok := keys.LogName(key)
			if ok && id > last {
				newer++
				return true
			}
		case keys.KindBlock, keys.KindTimed:
			if n, ok := keys.Number(key); ok && n >= next {
				return true
			}
		}
		return lost
	})
	if err != nil || newer == 0 {
		return err
	}
	r.lost(Loss{What: "state", Key: keys.Prefix(keys.Fixed, keys.KindState), Err: errNoEnd})
	r.guessed = true
	return r.survey()
}

// values calls fn with the valid values of a kind, and reports those that cannot be read.
func (r *repair) values(k keys.Kind, what string, fn func(key, v []byte) error) error {
	for _, g := range r.found.gens {
		if g > r.state.adopted {
			break
		}
		err := r.in.Iterate(keys.Prefix(g, k), keys.After(g, k), func(key []byte, value func() ([]byte, error)) error {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			v, err := value()
			if err != nil {
				r.lostValue(what, key, -1, err)
				return nil
			}
			return fn(key, v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *repair) saw(seq uint64) { r.highest = max(r.highest, seq) }

// copyBlocks copies the blocks whose records can be read.
func (r *repair) copyBlocks() error {
	var b blocks.Block
	return r.values(keys.KindBlock, "block", func(key, v []byte) error {
		if n, _ := keys.Number(key); r.dropped[n] {
			return nil
		}
		err := b.Fill(key, v, false)
		if err == nil {
			err = b.Each(func(_ int, rec *storage.TimedRecord) error {
				r.inBlock(rec.Seq)
				return nil
			})
		}
		if err != nil {
			r.lostValue("block", key, -1, err)
			return nil
		}
		r.report.Blocks++
		return r.set(key, v)
	})
}

// copyTimed copies the timed blocks that can be read, each with a head.
func (r *repair) copyTimed() error {
	var raw []byte
	whole := map[string]bool{}
	err := r.values(keys.KindTimed, "timed block", func(key, v []byte) error {
		n, _ := keys.Number(key)
		gen := uint32(key[0])<<24 | uint32(key[1])<<16 | uint32(key[2])<<8 | uint32(key[3])
		head := keys.Head(gen, n)
		whole[string(head)] = true
		if r.dropped[n] {
			return nil
		}
		b := storage.TimedBlock{Block: n}
		var err error
		if raw, err = blocks.OpenTimed(raw, key, v); err == nil {
			err = blocks.ReadTimed(raw, true, func(pos int, rec storage.TimedRecord) bool {
				if b.Count++; pos == 0 {
					b.Due = rec.Due
				}
				b.Priority = max(b.Priority, rec.Priority)
				r.inBlock(rec.Seq)
				return true
			})
		}
		if err != nil {
			r.lostValue("timed block", key, r.countOf(head), err)
			return nil
		}
		r.report.Blocks++
		r.state.next = max(r.state.next, n+1)
		if err := r.set(key, v); err != nil {
			return err
		}
		return r.set(head, blocks.TimedHead(head, b))
	})
	if err != nil {
		return err
	}
	return r.values(keys.KindHead, "timed block", func(key, _ []byte) error {
		if n, _ := keys.Number(key); !whole[string(key)] && !r.dropped[n] {
			r.lostValue("timed block", key, r.countOf(key), errNoBlock)
		}
		return nil
	})
}

// countOf returns the number of records according to the head of a timed block; -1 if there is none.
func (r *repair) countOf(head []byte) int {
	n := -1
	_, _ = r.in.Get(head, func(v []byte) error {
		if b, err := blocks.ReadTimedHead(head, v); err == nil {
			n = b.Count
		}
		return nil
	})
	return n
}

// copyDead copies the segments that record which records of blocks are finished.
func (r *repair) copyDead() error {
	for n, g := range r.found.dead {
		key := keys.Dead(g, n)
		_, err := r.in.Get(key, func(v []byte) error {
			if _, err := blocks.ReadSegment(n, key, v); err != nil {
				return err
			}
			return r.set(key, v)
		})
		if err != nil {
			r.lostValue("finished marks", key, 0, err)
		}
	}
	return nil
}

// finish writes the state, which makes the rest valid.
func (r *repair) finish() error {
	if err := r.flush(true); err != nil {
		return err
	}
	key := keys.Prefix(keys.Fixed, keys.KindState)
	r.batch.Set(key, r.state.value(key))
	return r.flush(true)
}
