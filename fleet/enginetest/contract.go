// This file tests the log and the table.

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/fleet"
)

// Writes are compared, in order, and survive a server.
func (start Start) contract(t *testing.T) {
	x := start.Three(t)
	ctx := t.Context()
	a, b, c := x.All[0], x.All[1], x.All[2]

	e, err := b.Get(ctx, "k")
	ok(t, err)
	same(t, fleet.Entry{}, e)
	one, err := a.Put(ctx, "k", []byte("1"), 0)
	ok(t, err)
	_, err = b.Put(ctx, "k", []byte("2"), 0)
	conflicts(t, err)
	e, err = c.Get(ctx, "k")
	ok(t, err)
	same(t, fleet.Entry{Key: "k", Value: []byte("1"), Revision: one}, e)

	seen := make(chan fleet.Entry, 10)
	watching, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		ended <- c.Watch(watching, func(all []fleet.Entry) {
			for _, e := range all {
				seen <- e
			}
		})
	}()
	same(t, one, (<-seen).Revision)
	two, err := b.Put(ctx, "k", []byte("2"), one)
	ok(t, err)
	same(t, true, two > one)
	same(t, fleet.Entry{Key: "k", Value: []byte("2"), Revision: two}, <-seen)
	stop()
	same(t, true, errors.Is(<-ended, context.Canceled))

	last := log(t, x)
	ok(t, a.Close())
	x.All[0] = nil
	for data := []byte(nil); string(data) != "on"; _, data, _ = c.Last(ctx, 7) { // an attempt may have been successful without an answer
		_, _ = c.Append(ctx, 7, last, []byte("on"))
	}
}

// log tests a log, and returns its end.
func log(t *testing.T, x *Trio) (last uint64) {
	ctx := t.Context()
	a, b, c := x.All[0], x.All[1], x.All[2]
	number, data, err := b.Last(ctx, 7)
	ok(t, err)
	same(t, uint64(0), number)
	same(t, 0, len(data))
	for i := range 40 {
		n, err := x.All[i%3].Append(ctx, 7, last, fmt.Appendf(nil, "r%d", i))
		ok(t, err)
		same(t, true, n > last)
		_, err = a.Append(ctx, 7, last, []byte("late"))
		conflicts(t, err)
		if i == 38 {
			number = last
		}
		last = n
	}
	n, data, err := b.Last(ctx, 7)
	ok(t, err)
	same(t, last, n)
	same(t, "r39", string(data))
	read := func(after, through uint64) (got []string) {
		ok(t, c.Read(ctx, 7, after, through, func(_ uint64, b []byte) error { got = append(got, string(b)); return nil }))
		return got
	}
	same(t, 40, len(read(0, last)))
	same(t, []string{"r38", "r39"}, read(number, last))
	ok(t, a.Purge(ctx, 7, number))
	same(t, []string{"r38", "r39"}, read(0, last))
	ok(t, a.Purge(ctx, 7, last))
	same(t, 0, len(read(0, last)))
	n, data, err = b.Last(ctx, 7)
	ok(t, err)
	same(t, last, n)
	same(t, 0, len(data))
	_, err = a.Append(ctx, 7, 1, []byte("late")) // of an owner before what was purged
	conflicts(t, err)
	for range 2 { // a large record, and a log that goes on behind what was purged
		large := make([]byte, 3<<20)
		n, err := b.Append(ctx, 7, last, large)
		ok(t, err)
		same(t, 1, len(read(last, n)))
		last = n
	}
	return last
}

// Logs of many partitions grow at once, and have two writers each: of those that append behind the same record one wins at
// most, and what has been won is there.
func (start Start) partitions(t *testing.T) {
	x := start.Three(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const partitions, tries = 12, 10
	var mu sync.Mutex
	var won [partitions]map[uint64]string // by the record's number
	var behind [partitions]map[uint64]bool
	var wg sync.WaitGroup
	for p := range partitions {
		won[p], behind[p] = map[uint64]string{}, map[uint64]bool{}
		for rival := range 2 {
			wg.Go(func() {
				for try := range tries {
					last, _, err := x.All[2].Last(ctx, p)
					if err != nil {
						t.Error(err)
						return
					}
					text := fmt.Sprintf("%d of %d", try, rival)
					if n, err := x.All[rival].Append(ctx, p, last, []byte(text)); err == nil {
						mu.Lock()
						if won[p][n] = text; behind[p][last] {
							t.Errorf("two records of %d are behind %d", p, last)
						}
						behind[p][last] = true
						mu.Unlock()
					}
				}
			})
		}
	}
	wg.Wait()
	for p := range partitions {
		end, _, err := x.All[2].Last(ctx, p)
		ok(t, err)
		before := uint64(0)
		ok(t, x.All[2].Read(ctx, p, 0, end, func(n uint64, b []byte) error {
			same(t, true, n > before)
			if text, acknowledged := won[p][n]; acknowledged {
				same(t, text, string(b))
			}
			delete(won[p], n)
			before = n
			return nil
		}))
		same(t, map[uint64]string{}, won[p])
		same(t, true, len(behind[p]) > 0)
	}
}
