// This file has what an owner does with a partition: fence its log, restore it, open its frontier, watch
// over its leases, and end.

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// slack is how much longer than needed a bound of leases is, so that it is written seldom.
const slack = 5 * time.Second

// own owns a partition until that ends. It returns an error if the partition could not be opened or went
// wrong.
func (n *Node) own(session context.Context, s *session, p int, epoch uint64, row partRow) (err error) {
	ctx, cancel := context.WithCancelCause(session)
	defer cancel(nil)
	l := &logged{engine: n.o.Engine, partition: p, epoch: epoch, ctx: ctx, turn: newSlot(), failed: func(err error) { cancel(err) }}
	if err := l.fence(); err != nil {
		return err
	}
	from := n.o.elapsed()
	leases, err := n.restore(ctx, l)
	if err != nil {
		return fmt.Errorf("fleet: restore partition %d: %w", p, err)
	}
	defer func() { err = errors.Join(err, l.store.Close()) }()
	n.claimed(p, l)
	b := &bound{n: n, s: s, writing: newSlot(), key: fmt.Sprint(boundKey, p), epoch: epoch}
	hold, err := b.inherit(ctx)
	if err != nil {
		return err
	}
	if leases != nil { // they are known, and no other host needs to wait
		hold = 0
	}
	held := n.o.elapsed() + hold
	opened, err := n.o.Open(ctx, Opening{Partition: p, Spill: l, ContactedAt: time.Now().Add(hold), Leases: leases, Permit: b.permit, State: n.State})
	if err != nil {
		return fmt.Errorf("fleet: open partition %d: %w", p, err)
	}
	row.Open, row.Epoch, row.Hold = true, epoch, max(0, held-n.o.elapsed())
	if _, err = n.putPart(ctx, p, row, epoch); err == nil {
		n.log.Info("fleet: partition open", "partition", p, "hold", hold, "took", n.o.elapsed()-from)
		var copies sync.WaitGroup
		copies.Go(func() { n.copyOften(ctx, l) })
		defer copies.Wait()
		defer cancel(nil)
		yields := n.yielding(p)
		for n.leaving.Load() == 0 && !(n.o.elapsed() >= held && yields()) && pause(ctx, turn/4) {
		}
		if ctx.Err() == nil {
			left, err := opened.Release(ctx)
			if err == nil && n.o.elapsed() >= held { // else leases of the owner before may last, and the next owner waits for them
				err = l.release(append([]byte{}, left...))
			}
			return err
		}
		err = context.Cause(ctx)
	}
	return errors.Join(err, opened.Close())
}

// bound keeps in the table how long the leases may last that are out, as a span from the moment of
// writing: no node's clock is compared with another's.
type bound struct {
	n        *Node
	s        *session
	key      string
	epoch    uint64
	until    atomic.Int64 // by this node's clock, as it was stated here: what others stated was seen later than they did
	writing  slot
	revision uint64        // guarded by writing
	before   time.Duration // guarded by writing; leases of earlier owners have ended then
}

// inherit returns how long leases of earlier owners may still last. What this owner states will not be less.
func (b *bound) inherit(ctx context.Context) (time.Duration, error) {
	e, err := b.n.o.Engine.Get(ctx, b.key)
	if err != nil || e.Revision == 0 {
		return 0, err
	}
	var row boundRow
	at := b.n.o.elapsed()
	if seen, ok := get(b.n.view, b.key, &row); ok && seen.Revision == e.Revision {
		at = seen.at
	} else if err := json.Unmarshal(e.Value, &row); err != nil {
		return 0, fmt.Errorf("fleet: %s: %w", b.key, err)
	}
	b.writing.take()
	defer b.writing.release()
	b.revision = e.Revision
	b.before = at + row.For
	return max(0, b.before-b.n.o.elapsed()), nil
}

// write states that no lease ends later than end.
func (b *bound) write(ctx context.Context, end time.Duration) error {
	now := b.n.o.elapsed()
	d := max(end, b.before) - now
	value, err := json.Marshal(boundRow{b.epoch, d})
	if err != nil {
		return err
	}
	revision, err := b.n.o.Engine.Put(ctx, b.key, value, b.revision)
	if errors.Is(err, ErrConflict) { // an attempt of our own whose outcome was unknown, or one of the owner before
		var row boundRow
		e, err := b.n.o.Engine.Get(ctx, b.key)
		if err == nil && e.Revision != 0 {
			err = json.Unmarshal(e.Value, &row)
		}
		if err == nil && row.Epoch > b.epoch { // what that owner has stated must stay
			err = errFenced
		}
		if err != nil {
			return err
		}
		b.revision = e.Revision
		return ErrConflict
	}
	if err != nil {
		return err
	}
	b.revision = revision
	b.until.Store(int64(now + d))
	return nil
}

// permit is Opening.Permit.
func (b *bound) permit(ctx context.Context, until time.Time) error {
	end := b.n.o.elapsed() + time.Until(until)
	for int64(end) > b.until.Load() {
		if _, ok := b.s.right(); !ok {
			break
		}
		err := func() error {
			b.writing.take()
			defer b.writing.release()
			if int64(end) <= b.until.Load() {
				return nil
			}
			return b.write(ctx, end+slack)
		}()
		if err != nil && !errors.Is(err, ErrConflict) {
			return fmt.Errorf("fleet: %w", err)
		}
	}
	if _, ok := b.s.right(); !ok {
		return errors.New("fleet: this node has not heard of the others for too long")
	}
	return nil
}
