// This file remembers what was confirmed, so that a log whose end is lost is told
// from one that ends there.
//
// The number lies in a page that is mapped into memory: noting it costs no system
// call, and the death of the process does not undo it. A loss of power may, and so
// without sync the number counts only until the machine starts again: its page
// might have reached the disk before those of the log.
//
//	file: two slots of slotLen, written in turn
//	slot: crc of the rest 4, 1 if with sync, start of the machine 16, number 8, version 8

package kv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
)

const (
	confirmedName = "CONFIRMED"
	slotLen       = 64
	slotUsed      = 4 + 1 + bootLen + 8 + 8
	bootLen       = 16
)

// note is what a slot has: a number, and the version of the last write then.
type note struct{ number, version uint64 }

// confirmed is the file. A nil one notes nothing.
type confirmed struct {
	before note // when it was opened
	safe   bool
	boot   [bootLen]byte
	page   []byte // mapped
	turn   int    // slot to be written next
}

// readConfirmed returns what was noted, if it counts.
func readConfirmed(dir string) (best note) {
	b, err := os.ReadFile(filepath.Join(dir, confirmedName))
	if err != nil {
		return best // nothing is known
	}
	boot, known := bootID()
	for ; len(b) >= slotLen; b = b[slotLen:] {
		s := b[:slotUsed]
		if binary.BigEndian.Uint32(s) != crc32.Checksum(s[4:], castagnoli) {
			continue // never written, or torn: the other one is older by one
		}
		if s[4] == 0 && (!known || [bootLen]byte(s[5:]) != boot) {
			continue
		}
		n := note{binary.BigEndian.Uint64(s[5+bootLen:]), binary.BigEndian.Uint64(s[13+bootLen:])}
		if n.number >= best.number {
			best = n
		}
	}
	return best
}

// openConfirmed opens or makes the file.
func openConfirmed(dir string, safe bool, before note) (*confirmed, error) {
	c := &confirmed{before: before, safe: safe}
	c.boot, _ = bootID()
	f, err := os.OpenFile(filepath.Join(dir, confirmedName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	// Written, so that the page has a place on the disk.
	old := make([]byte, 2*slotLen)
	n, _ := f.ReadAt(old, 0)
	if n < len(old) {
		clear(old[n:])
	}
	if _, err := f.WriteAt(old, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if c.page, err = mapPage(f, len(old)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if before.number > 0 {
		c.turn = c.slotOther(before)
	}
	return c, f.Close()
}

// slotOther returns the slot that does not hold n.
func (c *confirmed) slotOther(n note) int {
	for i := 0; (i+1)*slotLen <= len(c.page); i++ {
		if binary.BigEndian.Uint64(c.page[i*slotLen+5+bootLen:]) == n.number {
			return 1 - i
		}
	}
	return 0
}

// set notes a number.
func (c *confirmed) set(number, version uint64) {
	if c.page == nil {
		return
	}
	s := c.page[c.turn*slotLen:][:slotUsed]
	c.turn = 1 - c.turn
	s[4] = 0
	if c.safe {
		s[4] = 1
	}
	copy(s[5:], c.boot[:])
	binary.BigEndian.PutUint64(s[5+bootLen:], number)
	binary.BigEndian.PutUint64(s[13+bootLen:], version)
	binary.BigEndian.PutUint32(s, crc32.Checksum(s[4:], castagnoli))
}

func (c *confirmed) close() error {
	if c == nil || c.page == nil {
		return nil
	}
	page := c.page
	c.page = nil
	return unmapPage(page)
}
