// This file tests how clocks are compared.

package fleet

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clockwork makes nodes whose clocks are wrong.
type clockwork struct {
	t     *testing.T
	e     *fake
	root  string
	slow  atomic.Int64 // how long an answer takes, by the clocks of the nodes
	log   lockedBuffer
	began time.Time
}

type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(x []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(x)
}

func (b *lockedBuffer) said() string {
	b.Lock()
	defer b.Unlock()
	return b.String()
}

// join makes a node whose clock is ahead by some time.
func (c *clockwork) join(name string, ahead *atomic.Int64) (*Node, error) {
	w := &web{t: c.t, start: time.Now(), busy: map[int]bool{}, free: map[int]time.Time{}, acked: map[int]uint64{}}
	var h atomic.Pointer[Node]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.slow.Add(c.slow.Load())
		if n := h.Load(); n != nil {
			n.Handler().ServeHTTP(w, r)
		}
	}))
	c.t.Cleanup(srv.Close)
	none := func() time.Duration { return 0 }
	o := testOptions(c.t, w, name, filepath.Join(c.root, name), c.e, 1, none, none)
	o.Address, o.Client, o.Logger = srv.URL, srv.Client(), slog.New(slog.NewTextHandler(&c.log, nil))
	o.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	o.elapsed = func() time.Duration { return time.Since(c.began) + time.Duration(c.slow.Load()) }
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	n, err := Join(ctx, o)
	if err == nil {
		h.Store(n)
		c.t.Cleanup(n.Close)
	}
	return n, err
}

func by(d time.Duration) *atomic.Int64 {
	var x atomic.Int64
	x.Store(int64(d))
	return &x
}

// A node whose clock is surely more than a second off does not join, and the error names both. One that may be
// right joins, as does the first.
func TestAWrongClockDoesNotJoin(t *testing.T) {
	c := &clockwork{t: t, e: &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}, root: t.TempDir(), began: time.Now()}
	first := by(time.Hour)
	a, err := c.join("a", first)
	require.NoError(t, err, "it is alone")
	for name, off := range map[string]time.Duration{"b": 1500 * time.Millisecond, "c": -5 * time.Second} {
		_, err = c.join(name, by(time.Hour+off))
		require.ErrorContains(t, err, "the clock of node ")
		require.ErrorContains(t, err, "node a")
		require.ErrorContains(t, err, "node "+name)
	}
	require.ErrorContains(t, func() error { _, err := c.join("d", by(0)); return err }(), "the clock of node a is ahead of that of node d by 1h0m0s, give or take ")
	require.Eventually(t, func() bool { return len(a.view.members()) == 1 }, 10*time.Second, time.Millisecond, "no other node waits for those that were refused")
	require.NotContains(t, c.log.said(), "clock")
	near, err := c.join("near", by(time.Hour+500*time.Millisecond))
	require.NoError(t, err)
	clock := near.State().Nodes[0].Clock
	require.InDelta(t, -0.5, clock.Ahead, 0.2)
	require.Less(t, clock.Within, 0.2)

	sees := func(m member) bool { return m.Node == "near" } // a hears later, also of those that were refused
	require.Eventually(t, func() bool { return slices.ContainsFunc(a.view.members(), sees) }, 10*time.Second, time.Millisecond)
	first.Add(int64(time.Second)) // it drifts
	all := func(member) bool { return true }
	require.NoError(t, a.compareClocks(t.Context(), all))
	first.Add(int64(time.Second))
	require.ErrorContains(t, near.compareClocks(t.Context(), all), "the clock of node a is ahead of that of node near by 1.")
	require.ErrorContains(t, a.compareClocks(t.Context(), all), "node near")
}

// Where answers take long, a clock that may be right is no reason to refuse a node.
func TestASlowAnswerProvesNothing(t *testing.T) {
	c := &clockwork{t: t, e: &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}, root: t.TempDir(), began: time.Now()}
	_, err := c.join("a", by(0))
	require.NoError(t, err)
	c.slow.Store(int64(time.Second)) // each answer takes twice as long as the one before
	_, err = c.join("b", by(-1200*time.Millisecond))
	require.NoError(t, err)
	require.Contains(t, c.log.said(), "whether a clock is right is not known")
}
