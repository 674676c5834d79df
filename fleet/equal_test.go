// This file tests that a partition is the same frontier after takeovers, with everything that one stores.

package fleet

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/transfer"
)

var equalSeeds = flag.Int("frontier.equal", 3, "seeds of TestTakeoversKeepEverything")

// life is a frontier that one node has open.
type life struct {
	t     *testing.T
	n     *Node
	l     *logged
	f     *frontier.Frontier
	clock *simclock.Clock
	r     *rand.Rand
}

// bare returns a node that claims nothing by itself.
func bare(t *testing.T, e Engine, name string) *Node {
	n := &Node{
		o:  Options{Node: name, Dir: filepath.Join(t.TempDir(), name), Engine: e, Client: http.DefaultClient, elapsed: sinceBoot, Partitions: 1},
		id: "one", view: newView(sinceBoot), owned: map[int]*logged{}, cut: map[int]uint64{}, fetching: newSlot(),
	}
	n.log = quiet()
	n.o.open = openStore
	require.NoError(t, tidyCopies(filepath.Join(n.o.Dir, copiesFolder)))
	return n
}

// take opens partition 0 at a node as its next owner.
func (n *Node) take(t *testing.T, epoch uint64, clock *simclock.Clock, r *rand.Rand) *life {
	x := &life{t: t, n: n, clock: clock, r: r, l: &logged{engine: n.o.Engine, epoch: epoch, ctx: t.Context(), turn: newSlot(), failed: func(error) {}}}
	require.NoError(t, x.l.fence())
	_, err := n.restore(t.Context(), x.l)
	require.NoError(t, err)
	x.f, err = frontier.Open(t.Context(), frontier.Options{
		Spill: x.l, Clock: clock, ContactedAt: clock.Now(), Keep: true, Count: true, KeepOpen: true, Delay: frontier.FixedDelay(time.Second), Priorities: 4,
		Retry: frontier.Retries(3, time.Minute), MemoryBudget: 96 << 20,
	})
	require.NoError(t, err)
	return x
}

// end closes what a node has open, as if it had been fenced.
func (x *life) end() {
	x.l.turn.take()
	x.l.err = storage.ErrReopen
	x.l.turn.release()
	_ = x.f.Close()
	require.NoError(x.t, x.l.store.Close())
}

// work does random things of every kind.
func (x *life) work(steps int) {
	ctx, r, f := context.Background(), x.r, x.f
	host := func() string { return fmt.Sprintf("h%d.d%d.example", r.IntN(30), r.IntN(8)) }
	url := func() string { return fmt.Sprintf("http://%s/%d", host(), r.IntN(60)) }
	for range steps {
		switch k := r.IntN(30); {
		case k < 10:
			var all []frontier.Entry
			for range r.IntN(40) {
				e := frontier.Entry{URL: url(), Depth: r.IntN(6), Crawl: uint32(r.IntN(2)) * 7, Force: r.IntN(20) == 0}
				switch r.IntN(8) {
				case 0:
					e.NotBefore = x.clock.Now().Add(time.Duration(r.IntN(3600)) * time.Second)
				case 1:
					e.Meta = []byte(fmt.Sprint("meta", r.IntN(9)))
				}
				all = append(all, e)
			}
			_, err := f.Add(ctx, all...)
			require.NoError(x.t, err)
		case k < 20:
			x.clock.Advance(time.Duration(r.IntN(1500)) * time.Millisecond)
			l, _, err := f.TryNext()
			if err != nil {
				continue
			}
			o := frontier.Outcome{Result: frontier.Result(r.IntN(6)), CrawlDelay: time.Duration(r.IntN(3)) * time.Second}
			if o.Result == frontier.Failed {
				o.Failure = frontier.FailureTimeout
			}
			if r.IntN(3) == 0 {
				o.Next = x.clock.Now().Add(time.Duration(1+r.IntN(7200)) * time.Second)
			}
			for range r.IntN(4) {
				o.Add = append(o.Add, frontier.Entry{URL: url()})
			}
			_ = f.Join(&l, fmt.Sprint("group", r.IntN(3)))
			require.NoError(x.t, f.Done(l, o))
		case k < 22:
			require.NoError(x.t, f.UpdateRule(scope.Domain(fmt.Sprintf("d%d.example", r.IntN(8))), func(rule *frontier.Rule) {
				rule.Priority, rule.Concurrency = r.IntN(4), r.IntN(3)
			}))
		case k < 24:
			require.NoError(x.t, f.SetValue(ctx, fmt.Sprint("key", r.IntN(20)), []byte(fmt.Sprint(r.Uint64()))))
		case k == 24:
			_, err := f.DeleteWith(ctx, frontier.DeleteOptions{Scope: scope.Host(host()), Forget: r.IntN(2) == 0})
			require.NoError(x.t, err)
		case k == 25:
			require.NoError(x.t, f.SetGroup(fmt.Sprint("group", r.IntN(3)), frontier.GroupSettings{Concurrency: 1 + r.IntN(3)}))
		case k < 28:
			require.NoError(x.t, hook.Of(f).MoveNow(r.IntN(2) == 0))
		case k == 28:
			x.clock.Advance(time.Duration(r.IntN(1800)) * time.Second)
			hook.Of(f).ReadTimed()
		default:
			hook.Of(f).Sweep()
		}
	}
	hook.Of(f).Sweep()
	require.NoError(x.t, hook.Of(f).CommitNow())
}

// exported returns what the frontier has, without the clocks of hosts, in an order that says nothing of
// blocks.
func (x *life) exported() []string {
	var b strings.Builder
	err := transfer.Export(x.t.Context(), x.f, &b, transfer.ExportOptions{})
	require.NoError(x.t, err)
	require.NoError(x.t, x.f.Check())
	var lines []string
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, positionKey) || !kinds.MatchString(line) {
			continue
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

var kinds = regexp.MustCompile(`^\{"(url|marks|rule|value|forgotten|used)`)

func TestTakeoversKeepEverything(t *testing.T) {
	for seed := range *equalSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 3))
			e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
			clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			a := bare(t, e, "a")
			first := a.take(t, 1, clock, r)
			first.work(300)
			require.NoError(t, a.copy(t.Context(), first.l))
			first.work(300)
			want := first.exported()
			first.end()

			serve := httptest.NewServer(a.Handler())
			defer serve.Close()
			next := func(name string, epoch uint64) *life {
				n := bare(t, e, name)
				n.view.take([]Entry{{Key: nodeKey + "a", Value: fmt.Appendf(nil, `{"node":"a","session":"a/1","address":%q}`, serve.URL), Revision: 1}})
				return n.take(t, epoch, clock, r)
			}
			second := next("b", 2)
			require.Equal(t, want, second.exported(), "after the first takeover")
			second.work(300)
			want = second.exported()
			second.end()
			third := next("c", 3)
			require.Equal(t, want, third.exported(), "after the second takeover")
			third.end()
		})
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openStore(dir string, o spill.Options) (store, error) { return spill.Open(dir, o) }
