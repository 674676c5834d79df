// This file measures on Linux what the process and its folder cost.

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// anonymousMemory is how many bytes of memory are the process's own, files that
// are mapped into it excepted.
func anonymousMemory() float64 { return 1024 * procField("/proc/self/status", "RssAnon:") }

// writtenBytes returns how many bytes the process has caused to be written to disks.
func writtenBytes() float64 { return procField("/proc/self/io", "write_bytes:") }

// procField is the number behind a label at the beginning of a line.
func procField(file, label string) float64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.NaN()
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(label)); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				if n, err := strconv.ParseFloat(string(f[0]), 64); err == nil {
					return n
				}
			}
		}
	}
	return math.NaN()
}

// diskBytes returns the disk space of a folder. Logs are longer than their contents, so it counts
// blocks instead of sizes.
func diskBytes(dir string) float64 {
	var blocks int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				blocks += info.Sys().(*syscall.Stat_t).Blocks
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile
		}
		return err
	})
	if err != nil {
		return math.NaN()
	}
	return 512 * float64(blocks)
}

// freeBytes returns the free space on the volume of a folder.
func freeBytes(dir string) float64 {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return math.NaN()
	}
	return float64(st.Bavail) * float64(st.Bsize)
}

// loadAverage is how many tasks were running or ready in the last minute.
func loadAverage() float64 { return procField("/proc/loadavg", "") }

// machine describes what the figures were measured on.
func machine() string {
	parts := []string{strconv.Itoa(runtime.NumCPU()) + " cores"}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				parts = append(parts, strings.TrimSpace(value))
				break
			}
		}
	}
	if kB := procField("/proc/meminfo", "MemTotal:"); !math.IsNaN(kB) {
		parts = append(parts, strconv.Itoa(int(math.Round(kB/(1<<20))))+" GiB")
	}
	if load := loadAverage(); !math.IsNaN(load) {
		parts = append(parts, "load "+digits(load)+" at the start")
	}
	return strings.Join(parts, ", ")
}
