package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// server is the measured process. Without a pid its memory and CPU time are unknown.
type server struct{ pid int }

// cpu returns its CPU time from /proc, with the kernel's resolution of 10 ms.
func (s server) cpu() time.Duration {
	if s.pid == 0 {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may contain anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var ticks time.Duration
	for _, f := range fields[11:13] {
		n, _ := strconv.Atoi(f)
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// memory returns its current resident memory.
func (s server) memory() string {
	if s.pid == 0 {
		return "-"
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		return "-"
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kb), " kB"))
			return fmt.Sprintf("%d MB", n*1024/1_000_000)
		}
	}
	return "-"
}
