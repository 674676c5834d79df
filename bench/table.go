// This file holds the design's table of figures, and computes each line of it from the measures.

package main

import "math"

// goal is one figure of a line.
type goal struct {
	id        string // of the measure
	label     string // before or after the value
	atLeast   bool
	must, aim float64
	advisory  bool // shown, not judged: depends on the machine
	only      func(c *config) bool
	value     func(f figures) float64 // instead of a measure
	mustBe    func(f figures) float64 // instead of must
}

// line is a line of the table.
type line struct {
	what, must, aim string
	goals           []goal
}

// figures are the values of measures, by id.
type figures map[string]float64

func (f figures) at(id string) float64 {
	if v, ok := f[id]; ok {
		return v
	}
	return math.NaN()
}

// ratio returns the ratio of two measures.
func ratio(a, b string) func(figures) float64 {
	return func(f figures) float64 { return f.at(a) / f.at(b) }
}

const large = 50_000_000 // number of URLs from which on a run counts for the lines of 100 million

func isLarge(c *config) bool { return c.URLs >= large }
func isSmall(c *config) bool { return c.URLs < large }

var table = []line{
	{"Add, survives kill -9, 1 caller x 1,000, 10 M URLs over ~670 k Zipf hosts, spilled, deduplicated", "400 k URLs/s, 0.17 of badger fed one packed value per batch", "700 k/s, 0.29", []goal{
		{id: "ingest.add.rate", atLeast: true, must: 400e3, aim: 700e3, advisory: true},
		{id: "ingest.add.cpu.net", label: "CPU", advisory: true},
		{label: "of a plain file append", value: ratio("ingest.add.rate", "probe.file.rate"), advisory: true},
		{label: "of badger", value: ratio("ingest.add.rate", "probe.badger.rate"), atLeast: true, must: 0.17, aim: 0.29},
	}},
	{"Add, `Sync`, 16 callers x 100 / 256 callers x 1", "200 k/s / 60 k/s", "500 k/s / 280 k/s", []goal{
		{id: "sync.16x100.rate", atLeast: true, must: 200e3, aim: 500e3},
		{id: "sync.256x1.rate", atLeast: true, must: 60e3, aim: 280e3},
		{label: "and", value: ratio("sync.16x100.rate", "probe.file.sync.16x100.rate"), advisory: true},
		{label: "of a plain file with one fdatasync for all callers", value: ratio("sync.256x1.rate", "probe.file.sync.256x1.rate"), advisory: true},
	}},
	{"Add of known URLs (19 of 20 links are known), at 10 M / at 100 M known", "1 M/s / 0.5 M/s", "3 M/s / 1.5 M/s", []goal{
		{id: "known.even.rate", label: "drawn evenly", atLeast: true, must: 1e6, aim: 3e6, only: isSmall},
		{id: "known.popular.rate", label: "by popularity", atLeast: true, must: 1e6, aim: 3e6, only: isSmall},
		{id: "known.even.rate", label: "drawn evenly", atLeast: true, must: 0.5e6, aim: 1.5e6, only: isLarge},
		{id: "known.popular.rate", label: "by popularity", atLeast: true, must: 0.5e6, aim: 1.5e6, only: isLarge},
		{id: "known.even.cpu.net", label: "CPU, drawn evenly", advisory: true},
		{id: "known.popular.cpu.net", label: "CPU, by popularity", advisory: true},
	}},
	{"Next + Done, resident, in memory, 1 and 16 goroutines", "1.2 M/s, <= 1 alloc", "2.5 M/s, 0 allocs", []goal{
		{id: "resident.1.rate", atLeast: true, must: 1.2e6, aim: 2.5e6},
		{id: "resident.16.rate", atLeast: true, must: 1.2e6, aim: 2.5e6},
		{id: "resident.1.cpu", label: "CPU", advisory: true},
		{id: "resident.1.allocs", label: "allocs", must: 1.01, aim: 0.01},
		{label: "of the bare cycle without its Add", value: ratio("resident.1.rate", "probe.bare.next+done.rate"), atLeast: true, advisory: true},
	}},
	{"full durable cycle Add + Next + Done, spilled, zero delay, 64 workers", "150 k/s", "300 k/s", []goal{
		{id: "cycle.64.rate", atLeast: true, must: 150e3, aim: 300e3},
		{id: "cycle.64.cpu.net", label: "CPU", advisory: true},
	}},
	{"Next p99 when a URL is due, under that load, 16 / 64 workers", "<= 100 / 500 us", "<= 30 / 100 us", []goal{
		{id: "cycle.16.next.p99", must: 100, aim: 30},
		{id: "cycle.64.next.p99", must: 500, aim: 100},
	}},
	{"longest stall of an Add in 10 M", "<= 150 ms, or twice the raw probe's worst in that run", "<= 50 ms", []goal{
		{id: "ingest.add.max", must: 150e3, aim: 50e3, mustBe: func(f figures) float64 {
			return max(150e3, zeroNaN(2*f.at("probe.badger.write.max")))
		}},
		{id: "probe.badger.write.max", label: "the probe's", advisory: true},
	}},
	{"anonymous memory, peak, 10 M waiting", "<= 0.8 GB", "<= 0.45 GB", []goal{
		{id: "ingest.anon.peak", must: 0.8e9, aim: 0.45e9, only: isSmall},
		{id: "ingest.anon.settled", label: "settled", advisory: true, only: isSmall},
	}},
	{"100 M waiting over 5 M hosts: anonymous memory; last 10 M against first 10 M", "<= 3.0 GB; >= 0.5 of the speed", "<= 2.0 GB; >= 0.9", []goal{
		{id: "ingest.anon.peak", must: 3e9, aim: 2e9, only: isLarge},
		{id: "ingest.add.last/first", atLeast: true, must: 0.5, aim: 0.9, only: isLarge},
	}},
	{"disk per waiting URL, settled (seen set apart: <= 16 B); bytes written to disk per byte of entries", "<= 55 B; <= 4", "<= 40 B; <= 3", []goal{
		{id: "ingest.disk/url", label: "with the seen set", must: 55 + 16, aim: 40 + 16},
		{id: "drain.disk.left/known", label: "of each known URL left after draining", must: 16, aim: 16},
		{id: "ingest.written/byte", label: "written", must: 4, aim: 3},
	}},
	{"disk per waiting URL with a third left of a drained set", "<= 120 B", "<= 80 B", []goal{
		{id: "drain.third.disk/url", must: 120, aim: 80},
	}},
	{"reopen after kill -9, 10 M waiting", "<= 8 s", "<= 1.5 s", []goal{
		{id: "resume.reopen", must: 8, aim: 1.5},
	}},
	{"workers busy, against the best policy of `notes/limits.md` section 5, all its workloads", ">= 95 %", ">= 99 %", []goal{
		{id: "policy.worst", atLeast: true, must: 95, aim: 99},
	}},
	{"one host with 1 M URLs; 1 M hosts with 1 URL: rate against the mixed load", ">= 0.5", ">= 0.9", []goal{
		{id: "one-host.worst", label: "one host", atLeast: true, must: 0.5, aim: 0.9},
		{id: "one-url-hosts.worst", label: "one URL each", atLeast: true, must: 0.5, aim: 0.9},
	}},
	{"`longrun`: growth of memory, disk and p99 over the run, in per cent of their means, sure by two standard errors", "<= 5 %", "0 %", []goal{
		{id: "longrun.anon.high.drift.sure", label: "memory, full", must: 5, aim: 0},
		{id: "longrun.anon.low.drift.sure", label: "memory, a quarter full", must: 5, aim: 0},
		{id: "longrun.disk.high.drift.sure", label: "disk, full", must: 5, aim: 0},
		{id: "longrun.disk.low.drift.sure", label: "disk, a quarter full", must: 5, aim: 0},
		{id: "longrun.add.p99.drift.sure", label: "p99 of Add", must: 5, aim: 0},
		{id: "longrun.next.p99.drift.sure", label: "of Next", must: 5, aim: 0},
		{id: "longrun.done.p99.drift.sure", label: "of Done", must: 5, aim: 0},
	}},
}
