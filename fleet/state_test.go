// This file tests what nodes say of their fleet.

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/metrics"
	"github.com/seed-7440039f/frontier/storage"
)

// trio is a fleet of three on a fake engine, which joins in the order a, b, c.
func trio(t *testing.T, w *web, long time.Duration) (map[string]*Node, map[string]*fake) {
	all, root := newShared(), t.TempDir()
	nodes, engines := map[string]*Node{}, map[string]*fake{}
	for i, name := range []string{"a", "b", "c"} {
		engines[name] = &fake{shared: all, rand: rand.New(rand.NewPCG(1, uint64(i)))}
		n, err := Join(t.Context(), testOptions(t, w, name, filepath.Join(root, name), engines[name], 1, func() time.Duration { return 0 }, func() time.Duration { return long }))
		require.NoError(t, err)
		nodes[name] = n
	}
	return nodes, engines
}

func newWeb(t *testing.T) *web {
	return &web{t: t, start: time.Now(), busy: map[int]bool{}, free: map[int]time.Time{}, acked: map[int]uint64{}}
}

// each compares what all nodes but one say of the partition.
func each(t *testing.T, nodes map[string]*Node, but string, state, owner string) {
	t.Helper()
	for name, n := range nodes {
		if p := n.State().Partitions[0]; name != but {
			require.Equal(t, state+" "+owner, p.State+" "+p.Owner, name)
		}
	}
}

// Every node says who has the partition, which nodes are alive, and how long hosts are left alone; the owner
// says what its log has.
func TestEveryNodeKnowsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		nodes, engines := trio(t, w, testLease)
		time.Sleep(30 * time.Second)
		first, _, ok := nodes["a"].Owner(0)
		require.True(t, ok)
		each(t, nodes, "", "open", first)
		epoch := nodes[first].State().Partitions[0].Epoch
		for name, n := range nodes {
			s := n.State()
			require.Equal(t, name, s.Node)
			require.True(t, s.Confirmed)
			require.Len(t, s.Nodes, 3)
			for _, x := range s.Nodes {
				require.True(t, x.Alive)
				require.LessOrEqual(t, x.Seen, 3.0)
			}
			require.Equal(t, epoch, s.Partitions[0].Epoch)
			require.Equal(t, name == first, s.Partitions[0].Log != nil)
		}
		before := nodes[first].State().Partitions[0].Log
		require.NotZero(t, before.Changes)
		require.NotZero(t, before.Bytes)

		engines[first].mu.Lock() // the nodes share it
		engines[first].cut = true
		engines[first].mu.Unlock()
		time.Sleep(10 * time.Second)
		require.False(t, nodes[first].State().Confirmed)
		require.Contains(t, strings.Join(nodes[first].State().Lines(), "\n"), "hands nothing out")
		nodes[first].Close()
		rest := map[string]*Node{}
		for name, n := range nodes {
			if name != first {
				rest[name] = n
			}
		}
		second := ""
		for second == "" || second == first {
			time.Sleep(100 * time.Millisecond)
			for name, n := range rest {
				if owner, _, ok := n.Owner(0); ok && owner == name {
					second = owner
				}
			}
		}
		time.Sleep(time.Second)
		each(t, rest, "", "held", second)
		for _, n := range rest {
			p := n.State().Partitions[0]
			require.Greater(t, p.Epoch, epoch)
			require.InDelta(t, testLease.Seconds()/2, p.Held, testLease.Seconds()/2)
			for _, x := range n.State().Nodes {
				require.Equal(t, x.Node != first, x.Alive)
			}
		}
		log := rest[second].State().Partitions[0].Log
		require.Greater(t, log.Changes, before.Changes)
		require.Greater(t, log.Bytes, before.Bytes, "what the first owner has logged counts")
		require.Contains(t, strings.Join(rest[second].State().Lines(), "\n"), fmt.Sprintf("held at %s, epoch ", second))
		time.Sleep(time.Minute)
		each(t, rest, "", "open", second)
		engines[first].mu.Lock()
		engines[first].cut = false
		engines[first].mu.Unlock()
		again, err := Join(t.Context(), nodes[first].o)
		require.NoError(t, err)
		synctest.Wait()
		each(t, map[string]*Node{first: again}, "", "open", second)
		require.Positive(t, again.State().Partitions[0].Held, "for all that it knows")
		require.Contains(t, strings.Join(again.State().Lines(), "\n"), "open at "+second+", epoch ")
		require.Contains(t, strings.Join(again.State().Lines(), "\n"), ", hosts may wait for ")
		again.Close()
		for _, n := range rest {
			n.Close()
		}
		time.Sleep(time.Minute)
	})
}

// A node that comes gets the partitions to which it has the best right, in order, once it has been there for a while.
// One that cannot open them gets them less and less often.
func TestPartitionsGoToTheNodesWithTheBestRight(t *testing.T) {
	for _, broken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const partitions = 8
			w, all, root := newWeb(t), newShared(), t.TempDir()
			var nodes []*Node
			var mu sync.Mutex
			opened := map[string]int{}
			for i, name := range []string{"a", "b", "c"} {
				o := testOptions(t, w, name, filepath.Join(root, name), &fake{shared: all, rand: rand.New(rand.NewPCG(1, uint64(i)))}, partitions, func() time.Duration { return 0 }, func() time.Duration { return testLease })
				open := o.Open
				o.Open = func(ctx context.Context, x Opening) (Opened, error) {
					mu.Lock()
					defer mu.Unlock()
					if opened[name]++; broken && name == "b" {
						return nil, errors.New("no space")
					}
					return open(ctx, x)
				}
				n, err := Join(t.Context(), o)
				require.NoError(t, err)
				nodes = append(nodes, n)
				time.Sleep(30 * time.Second)
			}
			mu.Lock()
			require.Equal(t, partitions, opened["a"], "it was alone")
			mu.Unlock()
			time.Sleep(2 * time.Minute)
			moved := 0
			for p := range partitions {
				owner, _, ok := nodes[0].Owner(p)
				best := slices.MaxFunc(nodes, func(x, y *Node) int { return cmp.Compare(weight(x.o.Node, p), weight(y.o.Node, p)) }).o.Node
				switch {
				case broken && best == "b":
				case !ok || owner != best:
					t.Fatalf("partition %d: %s has it; want %s", p, owner, best)
				case owner != "a":
					moved++
				}
			}
			mu.Lock()
			if !broken {
				require.Equal(t, partitions+moved, opened["a"]+opened["b"]+opened["c"], "each moved once")
			}
			before := opened["b"]
			mu.Unlock()
			time.Sleep(time.Hour)
			mu.Lock()
			require.LessOrEqual(t, opened["b"]-before, 6*partitions)
			mu.Unlock()
			for _, n := range nodes {
				n.Close()
			}
			time.Sleep(time.Minute)
		})
	}
}

// read has what Figures reported.
type read map[string]float64

func (r read) Number(m *metrics.Metric, label string, v float64)        { r[m.Name+label] = v }
func (r read) Histogram(*metrics.Metric, string, *metrics.Distribution) {}

// A copy counts for those who have it, and the log from there on.
func TestTheStateOfACopy(t *testing.T) {
	e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
	n := bare(t, e, "a")
	m, err := openMemory(t.TempDir(), n.o.Store)
	require.NoError(t, err)
	l := &logged{store: m, engine: e, epoch: 1, ctx: t.Context(), turn: newSlot()}
	require.NoError(t, l.fence())
	for id := range uint64(3) {
		require.NoError(t, l.Commit(&storage.Batch{ID: id + 1}))
	}
	require.NoError(t, n.copy(t.Context(), l))
	require.NoError(t, l.Commit(&storage.Batch{ID: 4}))
	n.claimed(0, l)
	n.clocks = map[string]clockSeen{"a": {ahead: time.Second}}
	s, err := begin(t.Context(), e, sessionRow{Node: "a"}, time.Hour, sinceBoot)
	require.NoError(t, err)
	n.session.Store(s)
	see := func() PartitionState {
		var all []Entry
		for _, x := range e.table {
			all = append(all, x)
		}
		n.view.take(all)
		return n.State().Partitions[0]
	}
	p := see()
	require.EqualValues(t, 1, p.Log.Changes)
	require.EqualValues(t, 3, p.Copy.Change)
	require.Empty(t, p.Copy.Nodes)
	require.NoError(t, n.stateCopy(t.Context(), 0))
	require.Equal(t, []string{"a"}, see().Copy.Nodes)
	n.cut[0] = n.view.entries[copyKey+"0"].Revision
	require.True(t, see().Log.Cut)

	got := read{}
	Figures(n.State).Read(got)
	require.EqualValues(t, 1, got["frontier_fleet_nodes_alive"])
	require.EqualValues(t, 1, got["frontier_fleet_confirmed"])
	require.EqualValues(t, 1, got["frontier_fleet_log_changes0"])
	require.EqualValues(t, 1, got["frontier_fleet_copy_nodes0"])
	for _, m := range Figures(nil).Metrics() {
		label := ""
		if m.Label != "" {
			label = "0"
		}
		if m.Label == "node" {
			label = "a"
		}
		require.Contains(t, got, m.Name+label)
	}
}

// A node that was drained hands over at once, and takes nothing more, whatever becomes of its session and of the
// others, until it is called back.
func TestADrainedNodeTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		nodes, engines := trio(t, w, 0)
		owned := func() string {
			for name, n := range nodes {
				if owner, _, ok := n.Owner(0); ok && owner == name {
					return name
				}
			}
			return ""
		}
		time.Sleep(30 * time.Second)
		first := owned()
		n := nodes[first]
		require.NoError(t, n.Drain(t.Context(), false))
		time.Sleep(3 * time.Second)
		second := owned()
		require.NotContains(t, []string{"", first}, second, "another has it within 3 s")
		w.mu.Lock()
		acked := w.acked[0]
		w.mu.Unlock()
		time.Sleep(testLease + 5*time.Second)
		w.mu.Lock()
		require.Greater(t, w.acked[0], acked, "and is at work")
		w.mu.Unlock()

		set := func(cut bool) {
			engines[first].mu.Lock()
			defer engines[first].mu.Unlock()
			engines[first].cut = cut
		}
		before := n.session.Load().name
		set(true)
		time.Sleep(time.Minute)
		set(false)
		time.Sleep(10 * time.Second)
		require.NotEqual(t, before, n.session.Load().name)
		nodes[second].Close()
		delete(nodes, second)
		time.Sleep(time.Minute)
		third := owned()
		require.NotContains(t, []string{"", first, second}, third)
		for _, x := range n.State().Nodes {
			require.Equal(t, x.Node == first, x.Draining)
		}
		require.ErrorContains(t, nodes[third].Drain(t.Context(), false), "no other node")
		opened := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.opened
		}
		times := opened()
		nodes[third].Close()
		delete(nodes, third)
		time.Sleep(time.Minute)
		require.Equal(t, first, owned(), "no other is left")
		require.Equal(t, times+1, opened())
		require.False(t, n.State().Nodes[slices.IndexFunc(n.State().Nodes, func(x NodeState) bool { return x.Node == first })].Draining)
		n.Close()
		time.Sleep(time.Minute)
	})
}

func TestADeadNodeIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := trio(t, newWeb(t), 0)
		time.Sleep(30 * time.Second)
		a, names := nodes["a"], func() (all []string) {
			for _, x := range nodes["a"].State().Nodes {
				all = append(all, x.Node)
			}
			return all
		}
		require.ErrorContains(t, a.Forget(t.Context(), "b"), "it is alive")
		nodes["b"].Close()
		delete(nodes, "b")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"a", "b", "c"}, names())
		require.NoError(t, a.Forget(t.Context(), "b"))
		require.NoError(t, a.Forget(t.Context(), "x"), "there never was one")
		time.Sleep(time.Second)
		require.Equal(t, []string{"a", "c"}, names())
		for _, n := range nodes {
			n.Close()
		}
	})
}
