// This file holds what an operator says about groups: how long they are left alone
// and how many contacts they may have at once.
//
// Settings are durable rows, and are looked up when a group is met. What changes is
// told to the group at once; nobody loops over groups or their hosts.

package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/google/btree"
)

// GroupSettings say how a group of hosts is treated. The zero value is the default.
type GroupSettings struct {
	// Delay says how long a slot of the group is left alone after a contact: a
	// FixedDelay or FactorDelay. Nil means Options.GroupDelay.
	Delay DelayPolicy
	// Concurrency is how many of the group's hosts may be contacted at once, 1 to
	// 1024. Each slot keeps its own distance. Zero means 1.
	Concurrency int
}

// GroupInfo is what is known of a group.
type GroupInfo struct {
	Settings GroupSettings // as they were set; zero fields are at their defaults
	Hosts    int           // in memory that belong to it
	Leased   int           // slots in use: leases, and hosts that are about to be served
	Queued   int           // hosts that may be contacted, but for the group
	Due      time.Time     // when it may be contacted next, if a slot is not in use; zero: its clock is not running
}

// groupRules are the settings of groups. Readers take no lock: writers, who hold
// Frontier.mu, replace the tree.
type groupRules struct {
	tree atomic.Pointer[btree.BTreeG[groupRule]]
}

type groupRule struct {
	name string
	GroupSettings
}

// of returns what was set for a group.
func (r *groupRules) of(name string) GroupSettings {
	t := r.tree.Load()
	if t == nil {
		return GroupSettings{}
	}
	x, _ := t.Get(groupRule{name: name})
	return x.GroupSettings
}

// all yields the settings of all groups that have any.
func (r *groupRules) all() iter.Seq2[string, GroupSettings] {
	return func(yield func(string, GroupSettings) bool) {
		if t := r.tree.Load(); t != nil {
			t.Ascend(func(x groupRule) bool { return yield(x.name, x.GroupSettings) })
		}
	}
}

func (r *groupRules) set(name string, s GroupSettings) {
	t := r.tree.Load()
	if t == nil {
		t = btree.NewG(32, func(a, b groupRule) bool { return a.name < b.name })
	} else {
		t = t.Clone()
	}
	if s == (GroupSettings{}) {
		t.Delete(groupRule{name: name})
	} else {
		t.ReplaceOrInsert(groupRule{name, s})
	}
	r.tree.Store(t)
}

// check says what is wrong with settings.
func (s *GroupSettings) check() error {
	var errs []error
	if s.Delay != nil {
		if wrong := checkDelay("Delay", s.Delay); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else if encodeDelay(s.Delay) == nil {
			errs = append(errs, fmt.Errorf("delay is a %T, which cannot be stored; want FixedDelay or FactorDelay", s.Delay))
		}
	}
	if s.Concurrency < 0 || s.Concurrency > maxConcurrency {
		errs = append(errs, fmt.Errorf("concurrency is %d; want 1 to %d, or 0 for the default", s.Concurrency, maxConcurrency))
	}
	return errors.Join(errs...)
}

func checkGroup(name string) error {
	if len(name) < 1 || len(name) > 255 {
		return fmt.Errorf("group name has %d bytes; want 1 to 255", len(name))
	}
	return nil
}

// SetGroup says how a group is treated, which need not have any hosts; zero
// settings take that back. They are durable when SetGroup returns, and hold for
// the next hand-out and for contacts that end later. With fewer slots than are in
// use none is given until enough of them are free.
func (f *Frontier) SetGroup(name string, s GroupSettings) error {
	err := checkGroup(name)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("frontier: set group: %w", err)
	}
	o := newOp()
	defer o.free()
	if err := f.lockOpen(); err != nil {
		return err
	}
	f.setGroupLocked(o, name, s)
	return f.submitLocked(o) // unlocks
}

// setGroupLocked makes o set a group.
func (f *Frontier) setGroupLocked(o *op, name string, s GroupSettings) {
	c := f.core
	x := groupState{GroupSettings: s}
	if id := c.groupNamed(name); id != 0 {
		if last := c.slotsOf(id).last(); last > f.last {
			x.due = f.storedLocked(last) // the row may tell it
		}
	}
	o.rows = append(o.rows, groupRow(name, x))
	o.rule = func() {
		f.groupRules.set(name, s)
		if id := c.groupNamed(name); id != 0 {
			c.groups.at(id).set(s)
			c.requeueGroup(id)
		}
	}
}

// Group tells what is known of a group. It reports false if nothing is: it has no
// settings and no hosts in memory, and may be contacted at once.
func (f *Frontier) Group(name string) (GroupInfo, bool) {
	f.lookLocked()
	defer f.mu.Unlock()
	c := f.core
	x := GroupInfo{Settings: f.groupRules.of(name)}
	id := c.groupNamed(name)
	if id == 0 {
		return x, x.Settings != GroupSettings{}
	}
	g := c.groups.at(id)
	x.Hosts, x.Leased, x.Queued = int(g.members), int(g.used), int(g.waits)
	if g.free > 0 {
		x.Due = f.wall(g.free)
	}
	return x, x.Settings != GroupSettings{} || g.members > 0 || g.used > 0 || c.slotsOf(id).last() > f.last
}

// groupState is what the row of a group says.
type groupState struct {
	GroupSettings
	due int64 // Unix milliseconds; 0: it may be contacted at once
}

// Fields of a group's row: each is a tag, a length and a value.
const (
	groupDue         = 'u' // varint
	groupDelay       = 'd' // see encodeDelay
	groupConcurrency = 'c' // uvarint
)

// groupRow encodes what is known of a group. If that is nothing its row is deleted.
func groupRow(name string, s groupState) Row {
	row := Row{Key: rowGroup + name}
	field := func(tag byte, v []byte) {
		row.Value = binary.AppendUvarint(append(row.Value, tag), uint64(len(v)))
		row.Value = append(row.Value, v...)
	}
	if s.due != 0 {
		field(groupDue, binary.AppendVarint(nil, s.due))
	}
	if s.Delay != nil {
		field(groupDelay, encodeDelay(s.Delay))
	}
	if s.Concurrency != 0 {
		field(groupConcurrency, binary.AppendUvarint(nil, uint64(s.Concurrency)))
	}
	return row
}

// decodeGroup is the inverse of groupRow.
func decodeGroup(name string, value []byte) (groupState, error) {
	var s groupState
	corrupt := func() (groupState, error) {
		return groupState{}, &CorruptError{Key: []byte(rowGroup + name), Err: errRow}
	}
	if checkGroup(name) != nil {
		return corrupt()
	}
	for len(value) > 0 {
		size, n := binary.Uvarint(value[1:])
		if n <= 0 || size > uint64(len(value)-1-n) {
			return corrupt()
		}
		tag, v := value[0], value[1+n:1+n+int(size)]
		value = value[1+n+int(size):]
		var err error
		switch tag {
		case groupDue:
			var k int
			if s.due, k = binary.Varint(v); k <= 0 || k != len(v) {
				err = errRow
			}
		case groupDelay:
			s.Delay, err = decodeDelay(v)
		case groupConcurrency:
			x, k := binary.Uvarint(v)
			if k <= 0 || k != len(v) || x < 1 || x > maxConcurrency {
				err = errRow
			}
			s.Concurrency = int(x)
		default:
			err = unknown(int(tag))
		}
		if err != nil {
			return groupState{}, rowError(rowGroup+name, err)
		}
	}
	return s, nil
}
