// This file keeps small values of the program's beside the URLs.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/row"
)

// Limits of the values of SetValue.
const (
	MaxValueKey = row.MaxValueKey // bytes of a key
	MaxValue    = row.MaxValue    // bytes of a value
)

// valueBytes is what a value takes in memory beside its key and its bytes.
const valueBytes = 64

// SetValue stores a small value of the program's under a key of 1 to MaxValueKey bytes, instead of the
// former one; nil deletes it. It is for what must stay in step with the URLs, such as names of crawls
// or positions in feeds. When SetValue has returned without an error, the value is as durable as the
// URLs. Exports and copies of the store contain it. Without a Spill, values are in memory, and SetValue
// returns ErrFull when the MemoryBudget is used up. SetValue copies v.
func (f *Frontier) SetValue(ctx context.Context, key string, v []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := row.CheckValue(key, v); err != nil {
		return fmt.Errorf("frontier: set value: %w", err)
	}
	o := newOp()
	o.Context = ctx
	defer o.free()
	if err := f.lockOpen(); err != nil {
		return err
	}
	if err := f.valueLocked(o, key, v); err != nil {
		f.mu.Unlock()
		return err
	}
	return f.ledger.SubmitAndUnlock(&o.Op)
}

// valueLocked lets o store a value, or delete it.
func (s *shard) valueLocked(o *op, key string, v []byte) error {
	if s.opts.Spill != nil {
		o.Links = v != nil // a deletion needs no room
		r := row.Value(key, v)
		if v != nil {
			r.Value = o.Keep(r.Value)
		}
		o.Rows = append(o.Rows, r)
		return nil
	}
	if v != nil && valueBytes+int64(len(key)+len(v)) > s.freeLocked() {
		return ErrFull
	}
	v = slices.Clone(v)
	o.Rule = func() { s.keepValueLocked(key, v) }
	return nil
}

// keepValueLocked stores a value in memory.
func (s *shard) keepValueLocked(key string, v []byte) {
	if was, ok := s.values[key]; ok {
		s.valueBytes -= valueBytes + int64(len(key)+len(was))
		delete(s.values, key)
	}
	if v == nil {
		return
	}
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	s.values[key] = v
	s.valueBytes += valueBytes + int64(len(key)+len(v))
}

// Value returns the value that SetValue stored under a key, and whether there is one. The
// caller owns it.
func (f *Frontier) Value(key string) (v []byte, ok bool, err error) {
	if err := row.CheckValue(key, nil); err != nil {
		return nil, false, fmt.Errorf("frontier: value: %w", err)
	}
	f.mu.Lock()
	closed := f.closed
	v, ok = f.values[key]
	f.mu.Unlock()
	if closed {
		return nil, false, ErrClosed
	}
	if f.opts.Spill == nil {
		return slices.Clone(v), ok, nil
	}
	type answer struct {
		value []byte
		found bool
	}
	x, err := patience.Ask(context.Background(), f.abandoned, func() (x answer, err error) {
		x.value, x.found, err = f.opts.Spill.Row(row.ValueKey + key)
		return x, err
	})
	if err == nil && x.found {
		v, err = row.ParseValue(row.ValueKey+key, x.value)
	}
	switch {
	case err == nil:
		return v, x.found, nil
	case f.isClosed():
		return nil, false, ErrClosed
	}
	return nil, false, fmt.Errorf("frontier: value: %w", err)
}

// Values returns the values whose keys begin with prefix, as they are at one moment, by
// their keys. It returns ctx's error, ErrClosed, or the Spill's. The caller owns them.
func (f *Frontier) Values(ctx context.Context, prefix string) (map[string][]byte, error) {
	return patience.InTime(ctx, f.abandoned, func() (map[string][]byte, error) { return f.valuesWith(ctx, prefix) })
}

func (f *Frontier) valuesWith(ctx context.Context, prefix string) (map[string][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.isClosed() {
		return nil, ErrClosed
	}
	vs := map[string][]byte{}
	if f.opts.Spill == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		for key, v := range f.values {
			if strings.HasPrefix(key, prefix) {
				vs[key] = slices.Clone(v)
			}
		}
		return vs, nil
	}
	s, err := f.opts.Spill.Snapshot()
	if err == nil {
		defer s.Release()
		err = s.Rows(row.ValueKey+prefix, func(key string, value []byte) error {
			v, err := row.ParseValue(key, value)
			vs[strings.TrimPrefix(key, row.ValueKey)] = slices.Clone(v)
			return errors.Join(err, ctx.Err())
		})
	}
	switch {
	case err == nil:
		return vs, nil
	case f.isClosed():
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("frontier: values: %w", err)
}
