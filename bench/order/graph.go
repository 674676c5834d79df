// This file holds a graph of pages: how it is read, and its PageRank.

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The kinds of a page.
const (
	good = iota
	spam
	trap
)

// graph is a web of pages, each on a host.
type graph struct {
	hosts int
	first []int32 // links of page p: links[first[p]:first[p+1]], sorted
	links []int32
	host  []int32 // of each page
	kind  []byte
	seeds []int32
	reach int       // pages that can be reached from the seeds
	worth []float64 // PageRank of the graph of good pages alone: what is measured
}

func (g *graph) pages() int             { return len(g.kind) }
func (g *graph) out(page int32) []int32 { return g.links[g.first[page]:g.first[page+1]] }

// readGraph reads a file, packed with zstd or not; the README of the files has the format.
func readGraph(file string) (*graph, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".zst") {
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	}
	g := &graph{}
	var head [5]int64 // pages, hosts, links, seeds, reachable pages
	err = binary.Read(r, binary.LittleEndian, &head)
	if err == nil && (slices.Min(head[:]) < 0 || slices.Max(head[:]) > 1<<31-2) {
		err = fmt.Errorf("its numbers are %v", head)
	}
	if err == nil {
		n := int(head[0])
		g.hosts, g.reach = int(head[1]), int(head[4])
		g.first, g.links, g.host = make([]int32, n+1), make([]int32, head[2]), make([]int32, n)
		g.kind, g.seeds = make([]byte, n), make([]int32, head[3])
		g.worth = make([]float64, n)
	}
	all := make([]float64, head[0]) // the PageRank of all pages, bad ones included
	for _, part := range []any{g.first, g.links, g.host, g.kind, g.seeds, all, g.worth} {
		if err == nil {
			err = binary.Read(r, binary.LittleEndian, part)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return g, nil
}

// homes lists the first page of each host.
func (g *graph) homes() (homes []int32) {
	seen := make([]bool, g.hosts)
	for p, h := range g.host {
		if !seen[h] {
			seen[h], homes = true, append(homes, int32(p))
		}
	}
	return homes
}

// reached counts the pages that can be reached from seeds.
func (g *graph) reached(seeds []int32) int {
	seen, next := make([]bool, g.pages()), slices.Clone(seeds)
	for _, p := range seeds {
		seen[p] = true
	}
	for i := 0; i < len(next); i++ {
		for _, p := range g.out(next[i]) {
			if !seen[p] {
				seen[p], next = true, append(next, p)
			}
		}
	}
	return len(next)
}

// rank computes the PageRank of the graph that the good pages form.
func (g *graph) rank() {
	const damping, rounds = 0.85, 60
	n, all := g.pages(), 0.
	next, degree := make([]float64, n), make([]float64, n)
	g.worth = make([]float64, n)
	for p := range n {
		if g.kind[p] != good {
			continue
		}
		g.worth[p] = 1
		all++
		for _, t := range g.out(int32(p)) {
			if g.kind[t] == good {
				degree[p]++
			}
		}
	}
	for range rounds { // the sum is all
		clear(next)
		lost := 0. // of pages without links
		for p, worth := range g.worth {
			if degree[p] == 0 {
				lost += worth
				continue
			}
			for _, t := range g.out(int32(p)) {
				next[t] += damping * worth / degree[p]
			}
		}
		for p := range next {
			if next[p] += 1 - damping + damping*lost/all; g.kind[p] != good {
				next[p] = 0
			}
		}
		g.worth, next = next, g.worth
	}
	for p := range g.worth {
		g.worth[p] /= all
	}
}
