// This file is simulated workers.

package harness

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/policysim"
	"github.com/stretchr/testify/require"
)

// ByWeight makes an entry's weight its priority.
var ByWeight = frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return int(e.Weight) })

// LongestFetch is a bound on the fetches of workers.
const LongestFetch = 5 * time.Second

// workers fetch from a frontier in virtual time: each fetch takes 50 ms and an
// exponential part of 250 ms on average.
type workers struct {
	*World
	free int
	rand *rand.Rand
	out  []fetching // by the end of the fetch
}

type fetching struct {
	end   time.Duration
	lease frontier.Lease
}

// Hire returns n workers.
func (w *World) Hire(n int) *workers {
	return &workers{World: w, free: n, rand: rand.New(rand.NewPCG(7, 7))}
}

// Run hands out until stop says so after a lease was taken, or nothing is left.
func (k *workers) Run(taken func(frontier.Lease) (stop bool)) {
	k.Helper()
	for {
		l, at, err := frontier.Lease{}, time.Time{}, frontier.ErrNotDue
		if k.free > 0 {
			l, at, err = k.F.TryNext()
		}
		switch {
		case err == nil:
			k.free--
			k.fetch(l)
			if taken(l) {
				return
			}
			continue
		case errors.Is(err, frontier.ErrExhausted):
			return
		}
		require.ErrorIs(k, err, frontier.ErrNotDue)
		if len(k.out) > 0 && (at.IsZero() || k.out[0].end <= at.Sub(Dawn)) {
			at = Dawn.Add(k.out[0].end)
		}
		k.Clock.Set(at)
		for len(k.out) > 0 && k.out[0].end <= k.At() {
			require.NoError(k, k.F.Done(k.out[0].lease, frontier.Outcome{}))
			k.out = k.out[1:]
			k.free++
		}
	}
}

func (k *workers) fetch(l frontier.Lease) {
	d := 50*time.Millisecond + time.Duration(k.rand.ExpFloat64()*float64(policysim.MeanFetch-50*time.Millisecond))
	f := fetching{k.At() + min(d, LongestFetch), l}
	i := len(k.out)
	k.out = append(k.out, f)
	for ; i > 0 && k.out[i-1].end > f.end; i-- {
		k.out[i] = k.out[i-1]
	}
	k.out[i] = f
}

// AddEach adds the entries that each yields, in batches.
func (w *World) AddEach(each func(yield func(frontier.Entry) bool)) {
	w.Helper()
	var batch []frontier.Entry
	flush := func() {
		n, err := w.F.Add(context.Background(), batch...)
		require.NoError(w, err)
		require.Equal(w, len(batch), n)
		batch = batch[:0]
	}
	each(func(e frontier.Entry) bool {
		if batch = append(batch, e); len(batch) == 1000 {
			flush()
		}
		return true
	})
	flush()
}
