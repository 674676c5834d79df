// This file gives each node a disk of its own, a file system in a file, which can be full or slow.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	diskSize = 4 << 30
	reserve  = 256 << 20 // what the nodes' stores want to be free
)

// newDisks mounts the disks. The mounts of this process must be its own.
func newDisks(dir string) error {
	for i := range nodeCount {
		at := filepath.Join(dir, nameOf(i))
		err := errors.Join(os.MkdirAll(at, 0o777), os.WriteFile(at+".disk", nil, 0o666), os.Truncate(at+".disk", diskSize))
		if err == nil {
			err = command("mkfs.ext4", "-q", "-m", "0", at+".disk")
		}
		if err == nil {
			err = command("mount", "-o", "loop", at+".disk", at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill leaves a node little room, or none. It may kill or end it then, so that it starts without room.
func (f *faulter) fill(i int) {
	p, disk, span := f.nodes.nodes[i], filepath.Dir(f.nodes.folders[i]), f.between(5*time.Second, 40*time.Second)
	left := []int64{0, f.r.Int64N(reserve / 8), f.r.Int64N(reserve)}[f.r.IntN(3)]
	later := f.tell("%s has %d MiB left for %v", p.name, left>>20, span.Round(time.Millisecond))
	p.asked.Store(true)
	f.try(command("sh", "-c", `cd "$0" && fallocate -l $(($(df -B1 --output=avail . | tail -1) - $1 - 1048576)) full; [ $1 != 0 ] || cat /dev/zero >>full 2>&-; [ -s full ]`, disk, fmt.Sprint(left)))
	if s := []os.Signal{kill, finish, nil, nil}[f.r.IntN(4)]; s != nil {
		f.stop(i, s)
		f.try(p.begin())
	}
	f.back.Go(func() {
		ends := f.supervise(i, span, func() error { return os.Remove(filepath.Join(disk, "full")) })
		later("%s has room again, and takes part; it ended %d times by itself", p.name, ends)
	})
}

// stall lets no write of a node end for a while, in some turns.
func (f *faulter) stall(turns, i int) {
	disk := filepath.Dir(f.nodes.folders[i])
	f.during(nameOf(i), turns, f.between(time.Second, 40*time.Second),
		func() error { return command("fsfreeze", "-f", disk) }, func() error { return command("fsfreeze", "-u", disk) })
}
