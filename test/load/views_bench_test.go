package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// operated is a frontier in memory in which every host has a URL, belongs to a group and has been
// contacted, in virtual time. Hosts of a group share a domain.
type operated struct {
	testing.TB
	f             *frontier.Frontier
	clk           *simclock.Clock
	r             *rand.Rand
	hosts, groups int
}

func (o *operated) host(i int) string { return fmt.Sprintf("h%d.d%d.example", i, i%o.groups) }

func (o *operated) random() string { return o.host(o.r.IntN(o.hosts)) }

func (o *operated) domain() string { return fmt.Sprintf("d%d.example", o.r.IntN(o.groups)) }

func (o *operated) group(i int) string { return fmt.Sprint("g", i) }

func (o *operated) wait() time.Duration { return time.Duration(o.r.Int64N(int64(time.Hour))) }

func newOperated(b *testing.B, hosts, groups int) *operated {
	o := &operated{TB: b, clk: simclock.New(harness.Dawn), r: rand.New(rand.NewPCG(1, 2)), hosts: hosts, groups: groups}
	f, err := frontier.Open(context.Background(), harness.ParkAfter(24*time.Hour, frontier.Options{ // all stay in the heaps
		Clock: o.clk, Delay: frontier.FixedDelay(0), MemoryBudget: 8 << 30, Selector: selector.BiasedRandom(1),
	}))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, f.Close()) })
	o.f = f
	es := make([]frontier.Entry, 0, 1000)
	for i := range hosts {
		es = append(es, frontier.Entry{URL: "http://" + o.host(i) + "/some/path/to/a/page.html", Depth: i % 8})
		if len(es) == cap(es) || i == hosts-1 {
			_, err := f.Add(context.Background(), es...)
			require.NoError(b, err)
			es = es[:0]
		}
	}
	for i := range hosts {
		l := o.next()
		o.join(&l, i%groups)
		o.done(l)
	}
	for range 2 * hosts / 10 { // so that they are anywhere
		o.done(o.next())
	}
	return o
}

func (o *operated) next() frontier.Lease {
	for {
		l, at, err := o.f.TryNext()
		if err == nil {
			return l
		}
		if !errors.Is(err, frontier.ErrNotDue) || at.IsZero() {
			o.Fatal(err, at)
		}
		o.clk.Set(at)
	}
}

func (o *operated) join(l *frontier.Lease, group int) {
	if err := o.f.Join(l, o.group(group)); err != nil {
		o.Fatal(err)
	}
}

// done ends a contact; the URL comes again within an hour.
func (o *operated) done(l frontier.Lease) {
	if err := o.f.Done(l, frontier.Outcome{Result: frontier.Requeue, RetryAfter: o.wait()}); err != nil {
		o.Fatal(err)
	}
}

func (o *operated) must(err error) {
	if err != nil {
		o.Fatal(err)
	}
}

// BenchmarkOperate asks what scheduling, controls and views cost with a million
// hosts in 10,000 groups against a thousand in ten.
func BenchmarkOperate(b *testing.B) {
	ctx := context.Background()
	for _, size := range []struct{ hosts, groups int }{{1000, 10}, {1_000_000, 10_000}} {
		b.Run(fmt.Sprintf("hosts=%d/groups=%d", size.hosts, size.groups), func(b *testing.B) {
			o := newOperated(b, size.hosts, size.groups)
			// What is made when it is first asked for.
			inspect.New(o.f).Largest(1)
			for range inspect.New(o.f).Hosts(scope.All(), "") {
				break
			}
			run := func(op string, fn func()) {
				b.Run("op="+op, func(b *testing.B) {
					o.TB = b
					b.ReportAllocs()
					start := harness.CPUTime()
					for b.Loop() {
						fn()
					}
					b.ReportMetric(float64(harness.CPUTime()-start)/float64(b.N), "cpu-ns/op")
				})
			}
			run("next+done", func() { o.done(o.next()) })
			run("next+join+done", func() {
				l := o.next()
				o.join(&l, o.r.IntN(size.groups))
				o.done(l)
			})
			run("leave+assign", func() {
				i := o.r.IntN(size.hosts)
				o.must(o.f.Assign(o.host(i), ""))
				o.must(o.f.Assign(o.host(i), o.group(i%size.groups)))
			})
			run("pause+resume/scope=host", func() {
				s := scope.Host(o.random())
				o.must(o.f.Pause(s))
				o.must(o.f.Resume(s))
			})
			run("pause+resume/scope=domain", func() {
				s := scope.Domain(o.domain())
				o.must(o.f.Pause(s))
				o.must(o.f.Resume(s))
			})
			run("pause+resume/scope=all", func() {
				o.must(o.f.Pause(scope.All()))
				o.must(o.f.Resume(scope.All()))
			})
			run("block+clear", func() {
				s := scope.Host(o.random())
				o.must(o.f.BlockUntil(s, o.clk.Now().Add(time.Hour)))
				o.must(o.f.Clear(s))
			})
			run("host", func() {
				_, err := inspect.New(o.f).Host(ctx, o.random())
				o.must(err)
			})
			run("hosts/page=32", func() {
				n := 0
				for range inspect.New(o.f).Hosts(scope.All(), o.random()) {
					if n++; n == 32 {
						break
					}
				}
			})
			run("urls/page=32", func() {
				n := 0
				for _, err := range inspect.New(o.f).URLs(ctx, scope.Domain(o.domain()), "") {
					o.must(err)
					if n++; n == 32 {
						break
					}
				}
			})
			run("status", func() {
				_, err := inspect.New(o.f).Status(ctx, frontier.Entry{URL: "http://" + o.random() + "/some/path/to/a/page.html"})
				o.must(err)
			})
			run("largest/n=20", func() { inspect.New(o.f).Largest(20) })
			run("upcoming/n=20", func() {
				_, err := inspect.New(o.f).Upcoming(ctx, 20, false)
				o.must(err)
			})
			run("upcoming/n=20/urls", func() {
				_, err := inspect.New(o.f).Upcoming(ctx, 20, true)
				o.must(err)
			})
		})
	}
}
