// This file holds what an operator says about hosts and domains: so far, how
// long they are left alone.
//
// Rules lie in a B-tree under their names with the labels reversed, so that a
// domain is one range. The most specific rule wins: that of the host, then that
// of its closest domain. Nobody loops over hosts: a rule is looked up when a
// contact ends.

package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/btree"
)

// Scope names a host, a domain, or all hosts. The zero Scope is that of All.
type Scope struct {
	name   string
	domain bool
}

// All is the scope of all hosts.
func All() Scope { return Scope{} }

// Host is the scope of one host key.
func Host(key string) Scope { return Scope{name: key} }

// Domain is the scope of all hosts at or under a name: Domain("example.org") has
// example.org and www.example.org, not myexample.org.
func Domain(name string) Scope { return Scope{name, true} }

// String returns the host key, or the domain's name behind "*.".
func (s Scope) String() string {
	if s.domain {
		return "*." + s.name
	}
	return s.name
}

// key is the scope's place in the tree. A domain's ends with a dot, so it is the
// prefix of the keys of what lies under it.
func (s Scope) key() string {
	k := reversed(s.name)
	if s.domain {
		return k + "."
	}
	return k
}

type delayRule struct {
	key   string
	delay DelayPolicy
}

// controls are the rules in force. Readers take no lock: writers, who hold
// Frontier.mu, replace the tree.
type controls struct {
	delays atomic.Pointer[btree.BTreeG[delayRule]]
}

func newRules() *btree.BTreeG[delayRule] {
	return btree.NewG(32, func(a, b delayRule) bool { return a.key < b.key })
}

// delay returns the most specific rule's policy for a host, or nil.
func (c *controls) delay(host string) DelayPolicy {
	t := c.delays.Load()
	if t == nil || t.Len() == 0 {
		return nil
	}
	key := reversed(host)
	if r, ok := t.Get(delayRule{key: key}); ok {
		return r.delay
	}
	for key != "" {
		if r, ok := t.Get(delayRule{key: key + "."}); ok {
			return r.delay
		}
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return nil
}

func (c *controls) set(key string, d DelayPolicy) {
	t := newRules()
	if old := c.delays.Load(); old != nil {
		t = old.Clone()
	}
	if d == nil {
		t.Delete(delayRule{key: key})
	} else {
		t.ReplaceOrInsert(delayRule{key, d})
	}
	c.delays.Store(t)
}

// SetDelay makes d the delay policy of a host or of all hosts of a domain,
// instead of Options.Delay; nil takes the rule back. It is durable when SetDelay
// returns, and holds for contacts that end later. Only the policies FixedDelay
// and FactorDelay can be stored.
func (f *Frontier) SetDelay(s Scope, d DelayPolicy) error {
	if len(s.name) < 1 || len(s.name) > 255 {
		return fmt.Errorf("frontier: set delay: scope name has %d bytes; want 1 to 255", len(s.name))
	}
	row := Row{Key: rowDelay + s.key()}
	if d != nil {
		if errs := checkDelay("delay", d); len(errs) > 0 {
			return fmt.Errorf("frontier: set delay of %v: %w", s, errors.Join(errs...))
		}
		if row.Value = encodeDelay(d); row.Value == nil {
			return fmt.Errorf("frontier: set delay of %v: %T cannot be stored; want FixedDelay or FactorDelay", s, d)
		}
	}
	o := newOp()
	defer o.free()
	o.rows = append(o.rows, row)
	o.rule = func() { f.controls.set(s.key(), d) }
	f.lock()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	return f.submitLocked(o) // unlocks
}

// DelayOf returns the delay policy that a host has.
func (f *Frontier) DelayOf(host string) DelayPolicy {
	if d := f.controls.delay(host); d != nil {
		return d
	}
	return f.opts.Delay
}

// encodeDelay returns the stored form of a shipped policy: a letter, and its
// numbers. Other policies have none.
func encodeDelay(d DelayPolicy) []byte {
	switch d := d.(type) {
	case fixedDelay:
		return binary.AppendUvarint([]byte{'c'}, uint64(d))
	case factorDelay:
		b := binary.LittleEndian.AppendUint64([]byte{'k'}, math.Float64bits(d.k))
		return binary.AppendUvarint(binary.AppendUvarint(b, uint64(d.min)), uint64(d.max))
	}
	return nil
}

func decodeDelay(b []byte) (DelayPolicy, error) {
	var d DelayPolicy
	if len(b) > 0 && b[0] == 'c' {
		x, n := binary.Uvarint(b[1:])
		if n > 0 && x <= uint64(maxDelay) {
			d = fixedDelay(x)
		}
	}
	if len(b) > 9 && b[0] == 'k' {
		lo, n := binary.Uvarint(b[9:])
		if n > 0 && lo <= uint64(maxDelay) {
			if hi, m := binary.Uvarint(b[9+n:]); m > 0 && hi <= uint64(maxDelay) {
				d = factorDelay{math.Float64frombits(binary.LittleEndian.Uint64(b[1:])), time.Duration(lo), time.Duration(hi)}
			}
		}
	}
	if d == nil || len(checkDelay("delay", d)) > 0 {
		return nil, errRow
	}
	return d, nil
}
