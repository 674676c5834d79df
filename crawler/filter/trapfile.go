// This file stores the counts of guards and reads them again, so that a trap does not start afresh
// with each process.
//
// A file consists of a name and version, the key of the hashes, then the hosts, the most recently
// seen first: length of the name, name, number of counts, and for each its hash and value; a length
// of 0; and the CRC-32C of everything before. Numbers are big-endian.

package filter

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

const (
	trapVersion = 1
	trapFile    = "traps\x00" + string(rune(trapVersion))
	// What is written: counts that matter, and as many as fit into two megabytes.
	leastSaved = 8
	mostSaved  = 100_000
)

// ErrTrapFile is returned by Load, wrapped, for a file that Save did not write, or that is damaged.
var ErrTrapFile = errors.New("filter: no counts of guards")

// ErrVersion is returned by Load, wrapped, for a file written by another version.
var ErrVersion = errors.New("filter: another version's counts of guards")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Save writes the counts so far, except counts below 8; if there are more than 100,000, it omits
// those of the least recently seen hosts. The file has at most a few megabytes. Save may be called
// while the guards are used.
func (g *Traps) Save(w io.Writer) error {
	sum := crc32.New(castagnoli)
	b := bufio.NewWriter(w)
	out := io.MultiWriter(b, sum)
	key := g.key.Load()
	buf := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(trapFile), key[0]), key[1])
	for _, t := range g.tally.greatest(leastSaved, mostSaved) {
		buf = binary.BigEndian.AppendUint16(buf, uint16(len(t.host)))
		buf = append(buf, t.host...)
		buf = binary.BigEndian.AppendUint16(buf, uint16(len(t.counts)))
		for k, n := range t.counts {
			buf = binary.BigEndian.AppendUint64(buf, k)
			buf = binary.BigEndian.AppendUint32(buf, uint32(min(n, 1<<31-1)))
		}
		if _, err := out.Write(buf); err != nil {
			return fmt.Errorf("filter: save: %w", err)
		}
		buf = buf[:0]
	}
	if _, err := out.Write(binary.BigEndian.AppendUint16(buf, 0)); err != nil {
		return fmt.Errorf("filter: save: %w", err)
	}
	_, err := b.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	if err = cmp.Or(err, b.Flush()); err != nil {
		return fmt.Errorf("filter: save: %w", err)
	}
	return nil
}

// Load continues counting where Save was called. Call it on guards that have counted nothing yet,
// since it replaces their counts. After an error the counts are unchanged.
func (g *Traps) Load(r io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(r, 64<<20))
	if err != nil {
		return fmt.Errorf("filter: load: %w", err)
	}
	const head, tail = len(trapFile) + 16, 4
	if len(raw) < len(trapFile)+tail || string(raw[:len(trapFile)-1]) != trapFile[:len(trapFile)-1] {
		return ErrTrapFile
	}
	b, check := raw[:len(raw)-tail], raw[len(raw)-tail:]
	if crc32.Checksum(b, castagnoli) != binary.BigEndian.Uint32(check) {
		return fmt.Errorf("%w: damaged", ErrTrapFile)
	}
	if v := raw[len(trapFile)-1]; v != trapVersion {
		return fmt.Errorf("%w: they have version %d, this program knows %d", ErrVersion, v, trapVersion)
	}
	if len(b) < head {
		return fmt.Errorf("%w: it ends early", ErrTrapFile)
	}
	key := [2]uint64{binary.BigEndian.Uint64(b[head-16:]), binary.BigEndian.Uint64(b[head-8:])}
	tables, err := readTables(b[head:])
	if err != nil {
		return err
	}
	g.key.Store(&key)
	g.tally.put(tables)
	return nil
}

func readTables(b []byte) (all []*table, err error) {
	for {
		if len(b) < 2 {
			return nil, fmt.Errorf("%w: it ends early", ErrTrapFile)
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; n == 0 {
			return all, nil
		}
		if len(b) < n+2 {
			return nil, fmt.Errorf("%w: it ends early", ErrTrapFile)
		}
		t := &table{string(b[:n]), map[uint64]int{}}
		counts := int(binary.BigEndian.Uint16(b[n:]))
		if b = b[n+2:]; len(b) < 12*counts || counts > maxPerTable {
			return nil, fmt.Errorf("%w: it ends early", ErrTrapFile)
		}
		for range counts {
			t.counts[binary.BigEndian.Uint64(b)] = int(binary.BigEndian.Uint32(b[8:]))
			b = b[12:]
		}
		all = append(all, t)
	}
}

// greatest returns copies of tables, the most recently used first, with counts of at least least,
// and at most most counts in all. It holds the lock for one table at a time.
func (t *tally) greatest(least, most int) (all []*table) {
	for _, host := range t.names() {
		if len(host) == 0 || len(host) >= 1<<16 {
			continue
		}
		c := &table{host, map[uint64]int{}}
		t.mu.Lock()
		if e := t.hosts[host]; e != nil {
			for k, n := range e.Value.(*table).counts {
				if n >= least && len(c.counts) < most {
					c.counts[k] = n
				}
			}
		}
		t.mu.Unlock()
		if most -= len(c.counts); len(c.counts) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// names returns the hosts with counts, the last used first.
func (t *tally) names() (all []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.used.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*table).host)
	}
	return all
}

// put replaces the tables by the given ones, the most recently used first.
func (t *tally) put(tables []*table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hosts = nil
	t.used.Init()
	for _, x := range slices.Backward(tables[:min(len(tables), maxHosts)]) {
		t.insert(x)
	}
}
