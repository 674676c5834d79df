// This file gives badger's value log space on the volume before badger writes there: it is
// mapped into memory, and a write without space ends the process.

package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const valueHead = 40 // of a value in the log, at most

// valueLogs knows the file that badger writes. Badger begins another at the end of a
// transaction, when more than valueLog is in one.
type valueLogs struct {
	dir   string
	id    int   // of the file; 0: not known
	bytes int64 // of it that have space
}

func valueLogName(id int) string { return fmt.Sprintf("%06d%s", id, valueLogSuffix) }

// reserve fails if there is no space for so many bytes.
func (v *valueLogs) reserve(bytes int64) error {
	before := v.id
	if err := v.find(); err != nil {
		return err
	}
	need := max(2*valueLog, valueLog+bytes)
	if v.id == before && need <= v.bytes {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(v.dir, valueLogName(v.id)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(reserveAhead(f, need), f.Close()); err != nil {
		return err
	}
	v.bytes = need
	return nil
}

// find looks for the file with the highest number.
func (v *valueLogs) find() error {
	if v.id == 0 {
		entries, err := os.ReadDir(v.dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), valueLogSuffix); ok {
				id, _ := strconv.Atoi(name)
				v.id = max(v.id, id)
			}
		}
	}
	for {
		if _, err := os.Stat(filepath.Join(v.dir, valueLogName(v.id+1))); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		v.id++
	}
}
