// This file holds the list of scenarios and the environment of a run: its settings, a folder, and
// the destination of its results.

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// scenario is something to be measured.
type scenario struct {
	name    string
	about   string
	inTable bool
	probes  []string // raw probes that run right before it
	run     func(r *run) error
}

// scenarios are run in this order.
var scenarios []scenario

func init() { // the functions refer to the list
	scenarios = []scenario{
		{"ingest", "one caller adds all URLs, 1,000 at a time; then memory, disk and bytes written after settling", true, []string{"file", "badger", "copy"}, ingest},
		{"known", "19 of 20 links are known, drawn evenly and by popularity; goes on with ingest's URLs", true, nil, known},
		{"drain", "hands all URLs out, looks at the disk with a third left and afterwards; goes on with ingest's URLs", true, nil, drain},
		{"cycle", "Add, Next and Done on a full store without delays, 16 and 64 workers", true, []string{"bare"}, cycle},
		{"sync", "Add when every commit must survive a loss of power: 16 callers x 100, 256 x 1, 1 x 1,000", true, []string{"file-sync"}, synced},
		{"resident", "Next and Done in memory, 1 and 16 goroutines, up to 3 million URLs", true, []string{"bare"}, resident},
		{"resume", "a process that adds is killed with signal 9; another one goes on, and looks whether anything is lost", true, nil, resume},
		{"one-host", "up to 1 million URLs of one host, against the mixed load", true, nil, oneHostOnly},
		{"one-url-hosts", "up to 1 million hosts with one URL each, against the mixed load", true, nil, oneURLHosts},
		{"policy", "workers busy in virtual time, beside Mercator as published, time order and fixed numbers of back queues", true, nil, policy},
		{"skew", "one host with half of up to 1 million URLs; Zipf's law with exponents 1.1 and 1.4", false, nil, skew},
		{"scheduled", "one caller adds all URLs, each to be visited at a time of its own next year: memory, CPU and disk against ingest; reopened", false, nil, scheduled},
		{"wide", "all URLs over 5 million hosts, or -hosts: in, reopened, and out", false, nil, wide},
		{"longrun", "in and out between -urls and a quarter of them for as long as -time says; slopes of memory, disk and latency; no URL is remembered", false, nil, longrun},
		{"longrun-known", "the same with all URLs remembered: what each leaves behind", false, nil, longrunKnown},
	}
}

// helpers are jobs of processes that a scenario starts.
var helpers = map[string]func(r *run) error{"fill": fill}

// measure is one figure. Must and Aim come from the table, if the figure is in it.
type measure struct {
	Scenario string   `json:"scenario"`
	Name     string   `json:"name"`
	Value    float64  `json:"value"`
	Unit     string   `json:"unit"`
	Must     *float64 `json:"must,omitempty"`
	Aim      *float64 `json:"aim,omitempty"`
	OK       *bool    `json:"ok,omitempty"` // Must is met
}

func (m measure) id() string { return m.Scenario + "." + m.Name }

// point is a moment of a scenario.
type point struct {
	Seconds float64 `json:"s"`
	URLs    int64   `json:"urls"` // added or handed out so far
	Rate    float64 `json:"rate"` // since the last point
	// Calls are p50, p99 and the maximum of the calls since the last point, in microseconds, by
	// kind of call.
	Calls   map[string][3]float64 `json:"calls,omitempty"`
	Anon    float64               `json:"anon_bytes,omitempty"`
	Heap    float64               `json:"heap_bytes"`
	Memory  int64                 `json:"frontier_bytes"` // Stats().MemoryBytes
	Waiting int64                 `json:"waiting"`
	Disk    float64               `json:"disk_bytes,omitempty"`
	Written float64               `json:"written_bytes,omitempty"`
}

// series is the course of a scenario over time.
type series struct {
	Scenario string  `json:"scenario"`
	Name     string  `json:"name"`
	Points   []point `json:"points"`
}

// results are the measures of one process.
type results struct {
	Measures []measure `json:"measures"`
	Series   []series  `json:"series,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
}

// run is one run of a scenario, in a separate process.
type run struct {
	ctx  context.Context
	cfg  config
	name string
	work string // folder that all scenarios of the run share
	out  results
}

// dir is the scenario's own folder.
func (r *run) dir() string { return filepath.Join(r.work, r.name) }

// measure adds a figure. What is not known is left out.
func (r *run) measure(name string, value float64, unit string) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	r.out.Measures = append(r.out.Measures, measure{Scenario: r.name, Name: name, Value: value, Unit: unit})
	r.logf("%s: %s", name, show(value, unit))
}

// note adds a sentence to the results.
func (r *run) note(format string, args ...any) {
	r.out.Notes = append(r.out.Notes, r.name+": "+fmt.Sprintf(format, args...))
	r.logf(format, args...)
}

// logf reports progress, with -v.
func (r *run) logf(format string, args ...any) {
	if r.cfg.Verbose {
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().Format("15:04:05"), r.name, fmt.Sprintf(format, args...))
	}
}

// latencies adds the quantiles of calls.
func (r *run) latencies(call string, l *latencies) {
	if l.n == 0 {
		return
	}
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	r.measure(call+".p50", us(l.at(0.5)), "us")
	r.measure(call+".p99", us(l.at(0.99)), "us")
	r.measure(call+".p99.9", us(l.at(0.999)), "us")
	r.measure(call+".max", us(l.max), "us")
}

// source returns the URLs of the run: real ones, or made up over the requested hosts.
func (r *run) source() (source, error) {
	if r.cfg.URLsFile != "" {
		return openList(r.work)
	}
	if r.cfg.Hosts > 0 {
		n := uint64(r.cfg.Hosts)
		return r.made(everyHost(n, uint64(r.cfg.URLs), zipfHosts(n, 1.1))), nil
	}
	return r.made(zipfHosts(zipfUsual, 1.1)), nil
}

func (r *run) made(hosts hostsBy) source { return &synthetic{seed: scramble(r.cfg.Seed), hosts: hosts} }
