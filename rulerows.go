// This file stores rules: each in one row, its settings one after the other,
// each a tag, a length and a value, so that settings can be added.

package frontier

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

var ruleFields = [fieldCount]ruleField{
	fieldDelay: {
		tag:  'd',
		set:  func(r *Rule) bool { return r.Delay != nil },
		copy: func(dst, src *Rule) { dst.Delay = src.Delay },
		put:  func(b []byte, r *Rule) []byte { return append(b, encodeDelay(r.Delay)...) },
		get:  func(b []byte, r *Rule) (err error) { r.Delay, err = decodeDelay(b); return err },
	},
	fieldConcurrency: {
		tag:  'c',
		set:  func(r *Rule) bool { return r.Concurrency != 0 },
		copy: func(dst, src *Rule) { dst.Concurrency = src.Concurrency },
		put:  func(b []byte, r *Rule) []byte { return binary.AppendUvarint(b, uint64(r.Concurrency)) },
		get: func(b []byte, r *Rule) error {
			x, n := binary.Uvarint(b)
			if n != len(b) || x < 1 || x > maxConcurrency {
				return errRow
			}
			r.Concurrency = int(x)
			return nil
		},
	},
	fieldPaused: {
		tag:  'p',
		set:  func(r *Rule) bool { return r.Paused != Unset },
		copy: func(dst, src *Rule) { dst.Paused = src.Paused },
		put:  func(b []byte, r *Rule) []byte { return append(b, byte(r.Paused)) },
		get: func(b []byte, r *Rule) error {
			if len(b) != 1 || b[0] != byte(On) && b[0] != byte(Off) {
				return errRow
			}
			r.Paused = Switch(b[0])
			return nil
		},
	},
	fieldBlocked: {
		tag:  'b',
		set:  func(r *Rule) bool { return !r.BlockedUntil.IsZero() },
		copy: func(dst, src *Rule) { dst.BlockedUntil = src.BlockedUntil },
		put:  func(b []byte, r *Rule) []byte { return binary.AppendVarint(b, wallMillis(r.BlockedUntil)) },
		get: func(b []byte, r *Rule) error {
			ms, n := binary.Varint(b)
			if n <= 0 || n != len(b) || ms == 0 {
				return errRow
			}
			r.BlockedUntil = millisTime(ms)
			return nil
		},
	},
	fieldPriority: {
		tag:  'q',
		set:  func(r *Rule) bool { return r.Priority != 0 },
		copy: func(dst, src *Rule) { dst.Priority = src.Priority },
		put:  func(b []byte, r *Rule) []byte { return append(b, byte(r.Priority)) },
		get: func(b []byte, r *Rule) error {
			if len(b) != 1 || b[0] < 1 || b[0] > maxPriorities {
				return errRow
			}
			r.Priority = int(b[0])
			return nil
		},
	},
	fieldPriorities: { // up to the last that is set
		tag:  'Q',
		set:  func(r *Rule) bool { return r.Priorities != Priorities{} },
		copy: func(dst, src *Rule) { dst.Priorities = src.Priorities },
		put:  func(b []byte, r *Rule) []byte { return append(b, bytes.TrimRight(r.Priorities[:], "\x00")...) },
		get: func(b []byte, r *Rule) error {
			if len(b) < 1 || len(b) > maxPriorities || b[len(b)-1] == 0 || slices.Max(b) > maxPriorities {
				return errRow
			}
			copy(r.Priorities[:], b)
			return nil
		},
	},
	fieldLimits: {
		tag:  'l',
		set:  func(r *Rule) bool { return r.Limits != Limits{} },
		copy: func(dst, src *Rule) { dst.Limits = src.Limits },
		put:  func(b []byte, r *Rule) []byte { return appendLimits(b, &r.Limits) },
		get:  func(b []byte, r *Rule) error { return readLimits(b, &r.Limits) },
	},
	fieldHostLimits: {
		tag:  'L',
		set:  func(r *Rule) bool { return r.HostLimits != Limits{} },
		copy: func(dst, src *Rule) { dst.HostLimits = src.HostLimits },
		put:  func(b []byte, r *Rule) []byte { return appendLimits(b, &r.HostLimits) },
		get:  func(b []byte, r *Rule) error { return readLimits(b, &r.HostLimits) },
	},
}

// storedRule is what the row of a rule says.
type storedRule struct {
	Rule
	ended int64 // that of scopeRule, in Unix milliseconds; 0: none
}

// tagEnded is the tag of storedRule.ended, which is no setting.
const tagEnded = 'e'

// ruleRow encodes a rule for the store. An empty rule's row is deleted.
func ruleRow(key string, r *storedRule) Row {
	row := Row{Key: rowRule + key}
	add := func(tag byte, v []byte) {
		row.Value = append(row.Value, tag)
		row.Value = binary.AppendUvarint(row.Value, uint64(len(v)))
		row.Value = append(row.Value, v...)
	}
	for i := range ruleFields {
		if f := &ruleFields[i]; f.set(&r.Rule) {
			add(f.tag, f.put(nil, &r.Rule))
		}
	}
	if r.ended != 0 {
		add(tagEnded, binary.AppendVarint(nil, r.ended))
	}
	return row
}

// decodeRule is the inverse of ruleRow.
func decodeRule(key string, value []byte) (s Scope, r storedRule, err error) {
	if s, err = scopeOf(key); err != nil {
		return s, r, err
	}
	skipped := false
	for len(value) > 0 {
		tag := value[0]
		size, n := binary.Uvarint(value[1:])
		if n <= 0 || size > uint64(len(value)-1-n) {
			return s, r, errRow
		}
		v := value[1+n : 1+n+int(size)]
		value = value[1+n+int(size):]
		if err := decodeSetting(tag, v, &r); err != nil {
			return s, r, err
		}
		skipped = skipped || tag >= optional
	}
	if r.empty() && !skipped {
		return s, r, errRow
	}
	return s, r, nil
}

func decodeSetting(tag byte, v []byte, r *storedRule) error {
	for i := range ruleFields {
		if f := &ruleFields[i]; f.tag == tag {
			if f.set(&r.Rule) {
				return errRow // twice
			}
			return f.get(v, &r.Rule)
		}
	}
	if tag == tagEnded {
		ms, n := binary.Varint(v)
		if n <= 0 || n != len(v) || ms == 0 || r.ended != 0 || r.HostLimits == (Limits{}) {
			return errRow
		}
		r.ended = ms
		return nil
	}
	return unknown(int(tag))
}

// hostEnd ends the keys of the rules of hosts; those of domains end with a dot.
const hostEnd = '!'

// ruleKey is the scope's place in the tree of rules, and in the store.
func (s Scope) ruleKey() string {
	if s.named && !s.domain {
		return s.key() + string(hostEnd)
	}
	return s.key()
}

// scopeOf is the inverse of ruleKey.
func scopeOf(key string) (Scope, error) {
	if key == "" {
		return All(), nil
	}
	var s Scope
	switch name := reversed(key[:len(key)-1]); {
	case strings.HasSuffix(key, "."):
		s = Domain(name)
	case key[len(key)-1] == hostEnd:
		s = Host(name)
	default:
		return s, errRow
	}
	return s, s.check()
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
