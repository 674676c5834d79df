// This file is the minimum of work for a frontier in memory: find the host of a URL in a map, keep
// its URLs in order, take the host that is due first, and put it back. It has no locks, no
// priorities, no duplicates and no clock.

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

type bareHost struct {
	due  int64
	urls []barePlace // first in, first out
	head int
}

// barePlace is where a URL lies in a chunk of memory.
type barePlace struct {
	chunk, from, n uint32
}

type bare struct {
	hosts  map[string]int32
	all    []bareHost
	heap   []int32 // of hosts with URLs, by due; 4-ary
	chunks [][]byte
	now    int64
}

const bareChunk = 256 << 10

func (b *bare) add(url string) {
	_, rest, _ := strings.Cut(url, "://")
	name, _, _ := strings.Cut(rest, "/")
	id, ok := b.hosts[name]
	if !ok {
		id = int32(len(b.all))
		b.hosts[strings.Clone(name)] = id
		b.all = append(b.all, bareHost{})
	}
	last := len(b.chunks) - 1
	if last < 0 || len(b.chunks[last])+len(url) > bareChunk {
		b.chunks = append(b.chunks, make([]byte, 0, bareChunk))
		last++
	}
	c := b.chunks[last]
	h := &b.all[id]
	h.urls = append(h.urls, barePlace{uint32(last), uint32(len(c)), uint32(len(url))})
	b.chunks[last] = append(c, url...)
	if len(h.urls)-h.head == 1 {
		b.push(id)
	}
}

// next takes the first URL of the host that is due first; done puts it back.
func (b *bare) next() (int32, string) {
	id := b.heap[0]
	last := len(b.heap) - 1
	b.heap[0] = b.heap[last]
	b.heap = b.heap[:last]
	b.down()
	h := &b.all[id]
	p := h.urls[h.head]
	if h.head++; h.head == len(h.urls) {
		h.urls, h.head = h.urls[:0], 0
	}
	return id, string(b.chunks[p.chunk][p.from : p.from+p.n])
}

func (b *bare) done(id int32) {
	h := &b.all[id]
	b.now++
	h.due = b.now
	if len(h.urls) > h.head {
		b.push(id)
	}
}

func (b *bare) push(id int32) {
	i := len(b.heap)
	b.heap = append(b.heap, id)
	for i > 0 {
		up := (i - 1) / 4
		if b.all[b.heap[up]].due <= b.all[id].due {
			break
		}
		b.heap[i] = b.heap[up]
		i = up
	}
	b.heap[i] = id
}

func (b *bare) down() {
	n := len(b.heap)
	if n == 0 {
		return
	}
	id, i := b.heap[0], 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if b.all[b.heap[c]].due < b.all[b.heap[least]].due {
				least = c
			}
		}
		if b.all[b.heap[least]].due >= b.all[id].due {
			break
		}
		b.heap[i] = b.heap[least]
		i = least
	}
	b.heap[i] = id
}

// probeBare cycles with a million URLs waiting, or all.
func probeBare(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	n := min(r.cfg.URLs, 1_000_000)
	b := &bare{hosts: map[string]int32{}}
	var p page
	gen := generating(src, following(0))
	from := usageNow()
	for i := 0; i < n; i += perCall {
		for _, e := range p.fill(src, min(perCall, n-i), following(i)) {
			b.add(e.URL)
		}
	}
	r.cost("bare.add", int64(n), from, genTime(gen, int64(n)))
	// The number of URLs stays the same; new ones were made before.
	entries := p.fill(src, perCall, func(i int) (int, bool) { return i, true })
	from = usageNow()
	cycles, bytes := int64(0), 0
	for time.Since(from.at) < r.cfg.Phase/5 && cycles < int64(n) && r.ctx.Err() == nil {
		for i := range entries {
			id, url := b.next()
			bytes += len(url)
			b.done(id)
			b.add(entries[i].URL)
		}
		cycles += int64(len(entries))
	}
	r.cost("bare.cycle", cycles, from, 0)
	from = usageNow()
	left := int64(0)
	for len(b.heap) > 0 {
		id, url := b.next()
		bytes += len(url)
		b.done(id)
		left++
	}
	r.cost("bare.next+done", left, from, 0)
	if left != int64(n) || bytes == 0 {
		return errors.Join(fmt.Errorf("%d URLs left of %d", left, n), r.ctx.Err())
	}
	return r.ctx.Err()
}
