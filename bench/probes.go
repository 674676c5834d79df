// This file measures the parts of a frontier separately: the bounds with which its figures are
// compared.

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// probes run right before the scenarios that use them.
var probes = map[string]func(r *run) error{
	"file":      probeFile,
	"file-sync": probeFileSync,
	"badger":    probeBadger,
	"copy":      probeCopy,
	"bare":      probeBare,
}

const packs = 64 // different values that a probe writes in turn

// probeURLs returns how many URLs a probe writes: those of the run, within bounds.
func (r *run) probeURLs() int { return min(max(r.cfg.URLs, 2_000_000), 10_000_000) }

// packed returns values of perCall URLs each.
func (r *run) packed(perCall int) ([][]byte, error) {
	src, err := r.source()
	if err != nil {
		return nil, err
	}
	values := make([][]byte, packs)
	for i := range values {
		for j := range perCall {
			values[i] = src.appendURL(values[i], (i*perCall+j)%min(r.cfg.URLs, src.size()))
			values[i] = append(values[i], '\n')
		}
	}
	return values, nil
}

// writes calls write until n URLs or a time have passed.
func (r *run) writes(what string, n, perCall int, limit time.Duration, write func(i int) error) error {
	var calls histogram
	from := usageNow()
	done := 0
	for ; done < n && time.Since(from.at) < limit && r.ctx.Err() == nil; done += perCall {
		begun := time.Now()
		if err := write(done / perCall); err != nil {
			return err
		}
		calls.record(time.Since(begun))
	}
	r.cost(what, int64(done), from, 0)
	r.latencies(what+".write", merged([]*histogram{&calls}))
	return r.ctx.Err()
}

// probeFile appends framed values to a file.
func probeFile(r *run) error { return r.append("file", perCall, false, 4*r.cfg.Phase) }

// probeFileSync syncs after each group that the callers of the table would make.
func probeFileSync(r *run) error {
	for _, g := range []struct {
		name string
		urls int
	}{{"16x100", 1600}, {"256x1", 256}, {"1x1000", 1000}} {
		if err := r.append("file.sync."+g.name, g.urls, true, r.cfg.Phase/5); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) append(name string, perCall int, sync bool, limit time.Duration) error {
	values, err := r.packed(perCall)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.dir(), name))
	if err != nil {
		return err
	}
	var frame []byte
	err = r.writes(name, r.probeURLs(), perCall, limit, func(i int) error {
		v := values[i%packs]
		frame = binary.LittleEndian.AppendUint32(frame[:0], uint32(len(v)))
		frame = binary.LittleEndian.AppendUint32(frame, crc32.Checksum(v, castagnoli))
		_, err := f.Write(append(frame, v...))
		if err == nil && sync {
			err = f.Sync()
		}
		return err
	})
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// probeBadger sets one value for each batch of URLs: no keys for URLs, no
// duplicates found, no hosts, nothing to be read again.
func probeBadger(r *run) error {
	values, err := r.packed(perCall)
	if err != nil {
		return err
	}
	o := badger.DefaultOptions(filepath.Join(r.dir(), "badger")).
		WithMemTableSize(32 << 20).WithNumMemtables(3).WithNumCompactors(2).
		WithCompression(options.None).WithBlockCacheSize(0).
		WithNumVersionsToKeep(1).WithDetectConflicts(false).WithMetricsEnabled(false).
		WithSyncWrites(r.cfg.Sync).WithLogger(nil)
	db, err := badger.Open(o)
	if err != nil {
		return err
	}
	err = r.writes("badger", r.probeURLs(), perCall, 4*r.cfg.Phase, func(i int) error {
		txn := db.NewTransaction(true)
		defer txn.Discard()
		if err := txn.Set(binary.BigEndian.AppendUint64(nil, uint64(i)), values[i%packs]); err != nil {
			return err
		}
		return txn.Commit()
	})
	r.measure("badger.anon", anonymousMemory(), "B")
	return errors.Join(err, db.Close())
}

// probeCopy copies memory that is in no cache.
func probeCopy(r *run) error {
	const size, times = 64 << 20, 16
	from, to := make([]byte, size), make([]byte, size)
	for i := range from {
		from[i] = byte(i)
	}
	copy(to, from)
	begun := time.Now()
	for range times {
		if copy(to, from) != size {
			return fmt.Errorf("copied less than %d bytes", size)
		}
	}
	r.measure("copy.rate", size*times/time.Since(begun).Seconds(), "B/s")
	return nil
}
