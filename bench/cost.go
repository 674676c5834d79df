// This file measures the cost of a part of a run: wall clock, CPU, allocations and bytes written,
// and how much of that was spent on making URLs.

package main

import (
	"runtime"
	"time"
)

// usage is what the process has used so far.
type usage struct {
	at      time.Time
	cpu     time.Duration
	mallocs uint64
	written float64
}

func usageNow() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{time.Now(), cpuTime(), m.Mallocs, writtenBytes()}
}

// cost adds the cost of n operations since from. gen is the CPU time for making the URLs: it is
// included in cpu, and subtracted in cpu.net.
func (r *run) cost(what string, n int64, from usage, gen time.Duration) {
	if n == 0 {
		return
	}
	to := usageNow()
	ops := float64(n)
	wall := to.at.Sub(from.at)
	r.measure(what+".rate", ops/wall.Seconds(), "/s")
	if cpu := to.cpu - from.cpu; cpu > 0 {
		r.measure(what+".cpu", float64(cpu)/1e3/ops, "us")
		if gen > 0 {
			r.measure(what+".cpu.net", float64(cpu-gen)/1e3/ops, "us")
		}
	}
	r.measure(what+".allocs", float64(to.mallocs-from.mallocs)/ops, "")
	r.measure(what+".written", (to.written-from.written)/ops, "B")
}

// generating returns the CPU time for making one URL, in nanoseconds, measured separately on URLs
// with the given numbers.
func generating(src source, number func(i int) (int, bool)) float64 {
	const n = 50_000
	var p page
	made := number
	number = func(i int) (int, bool) {
		u, fresh := made(i)
		return u % src.size(), fresh
	}
	for i := range 5 { // to warm up
		p.fill(src, 1000, func(j int) (int, bool) { return number(i*1000 + j) })
	}
	begun := cpuTime()
	for i := range n / 1000 {
		p.fill(src, 1000, func(j int) (int, bool) { return number(i*1000 + j) })
	}
	return float64(cpuTime()-begun) / n
}

// genTime returns the time for making n URLs, at the given nanoseconds each.
func genTime(each float64, n int64) time.Duration { return time.Duration(each * float64(n)) }
