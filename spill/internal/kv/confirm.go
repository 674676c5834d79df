// This file records what was confirmed, to distinguish a log whose end is lost from a log that ends
// there.
//
// The number is in a page mapped into memory: recording it takes no system call, and it survives
// the death of the process. It may not survive a loss of power. So without sync the number is valid
// only until the machine or the mount of the volume restarts, because its page might have reached
// the disk before those of the log. After that the number known to be on the medium is valid, which
// each slot also contains: Sync notes it and brings the page to the medium, so that it is there
// before any file is removed that older states need.
//
//	file: two slots of slotLen, written in turn
//	slot: crc of the rest 4, 1 if with sync, start of the machine 8, mount 8,
//	      number 8, version 8, the same of what is on the medium 8, 8

package kv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"github.com/seed-7440039f/frontier/spill/internal/wire"
)

const (
	confirmedName = "CONFIRMED"
	slotLen       = 64
	slotUsed      = 4 + 1 + bootLen + 4*8
	bootLen       = 16
)

// note is a number, and the version of the last write then.
type note struct{ number, version uint64 }

// noted is the content of the file on opening.
type noted struct {
	last    note // that was confirmed
	durable note // that is known to be on the medium
	safe    bool // noted with sync: all of it was on the medium before
	lost    bool // power may have been lost since: what is not on the medium may be missing
}

// known returns what must exist.
func (n noted) known() note {
	if n.lost {
		return n.durable
	}
	return n.last
}

// confirmed is the file. A nil one notes nothing.
type confirmed struct {
	before noted // when it was opened
	safe   bool
	boot   [bootLen]byte
	file   *os.File
	flush  func(*os.File) error // of it to the medium

	mu   sync.Mutex
	page []byte // guarded by mu; mapped; nil where nothing can be
	turn int    // guarded by mu; slot to be written next
	now  noted  // guarded by mu
}

// readConfirmed returns the recorded numbers.
func readConfirmed(dir string) (best noted) {
	b, err := os.ReadFile(filepath.Join(dir, confirmedName))
	if err != nil {
		return best // nothing is known
	}
	boot, known := bootID(dir)
	for ; len(b) >= slotLen; b = b[slotLen:] {
		s := b[:slotUsed]
		if binary.BigEndian.Uint32(s) != crc32.Checksum(s[4:], wire.Castagnoli) {
			continue // never written, or torn: the other one is older by one
		}
		var n [4]uint64
		for i := range n {
			n[i] = binary.BigEndian.Uint64(s[5+bootLen+8*i:])
		}
		x := noted{last: note{n[0], n[1]}, durable: note{n[2], n[3]}}
		x.safe = s[4] != 0
		x.lost = !x.safe && (!known || [bootLen]byte(s[5:]) != boot)
		if x.last.number > best.last.number || x.last.number == best.last.number && x.durable.version >= best.durable.version {
			best = x
		}
	}
	return best
}

// openConfirmed opens or creates the file, and writes what is known to both slots, as of this start
// of the machine. All that is known must be on the medium.
func openConfirmed(dir string, c Config, before noted) (*confirmed, error) {
	x := &confirmed{before: before, safe: c.Sync, flush: c.flush, now: noted{last: before.known(), durable: before.known()}}
	x.boot, _ = bootID(dir)
	var err error
	if x.file, err = os.OpenFile(filepath.Join(dir, confirmedName), os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	slots := make([]byte, 2*slotLen)
	x.put(slots)
	x.put(slots[slotLen:])
	// Written so that the page is allocated on the disk.
	if _, err = x.file.WriteAt(slots, 0); err == nil {
		if err = x.file.Sync(); err == nil {
			x.page, err = mapPage(x.file, len(slots))
		}
	}
	if err != nil {
		return nil, errors.Join(err, x.file.Close())
	}
	return x, nil
}

// set records what was confirmed.
func (c *confirmed) set(n note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.last = n
	c.write()
}

// last returns what was confirmed last.
func (c *confirmed) last() note {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.last
}

// onMedium records what is on the medium, and brings that there. Confirming goes on meanwhile.
func (c *confirmed) onMedium(n note) error {
	c.mu.Lock()
	c.now.durable = n
	c.write()
	var err error
	if c.page == nil {
		slot := make([]byte, slotLen)
		c.put(slot)
		_, err = c.file.WriteAt(slot, 0) // both would be alike
	}
	c.mu.Unlock()
	if err == nil {
		err = c.flush(c.file)
	}
	return err
}

func (c *confirmed) write() {
	if c.page == nil {
		return
	}
	c.put(c.page[c.turn*slotLen:])
	c.turn = 1 - c.turn
}

// put writes a slot.
func (c *confirmed) put(slot []byte) {
	s := slot[:slotUsed]
	s[4] = 0
	if c.safe {
		s[4] = 1
	}
	copy(s[5:], c.boot[:])
	for i, n := range []uint64{c.now.last.number, c.now.last.version, c.now.durable.number, c.now.durable.version} {
		binary.BigEndian.PutUint64(s[5+bootLen+8*i:], n)
	}
	binary.BigEndian.PutUint32(s, crc32.Checksum(s[4:], wire.Castagnoli))
}

func (c *confirmed) close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	page := c.page
	c.page = nil
	return errors.Join(unmapPage(page), c.file.Close())
}
