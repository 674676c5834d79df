//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// checkOwner refuses a folder with another user's crawl: new files in it would be ours, and its owner
// could not open them. Any user may use a folder without a crawl.
func checkOwner(dir string) error {
	info, err := os.Stat(filepath.Join(dir, manifest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() {
		return nil
	}
	owner := strconv.FormatUint(uint64(s.Uid), 10)
	name := "'#" + owner + "'"
	if u, err := user.LookupId(owner); err == nil {
		owner, name = u.Username, u.Username
	}
	return fmt.Errorf("the crawl in %s is user %s's, who could not open what another user writes there: run this as that user (sudo -u %s frontier ...)", dir, owner, name)
}
