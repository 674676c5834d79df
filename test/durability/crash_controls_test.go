// This file kills a process right after controls and contacts, and looks at what
// is left: each that was acknowledged is in force, and no host may be contacted
// before it could have been.

package durability

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var (
	controlsChild  = flag.String("frontier.controls-child", "", "be the process that is killed, with the store in this folder")
	controlsAfter  = flag.Int("frontier.controls-after", 0, "kill that process after so many controls; 0: somebody else does")
	controlsRounds = flag.Int("frontier.controls-rounds", 2, "how often TestKillAfterControls kills")
)

// controlled is what acknowledged controls make of a frontier.
type controlled struct {
	rules map[scope.Scope]frontier.Rule
	more  map[string]string // by name: whatever else is set
	bytes int64             // counted for the limits of All
}

func newControlled() *controlled {
	return &controlled{map[scope.Scope]frontier.Rule{}, map[string]string{}, 0}
}

func (c *controlled) clone() *controlled {
	return &controlled{maps.Clone(c.rules), maps.Clone(c.more), c.bytes}
}

func (c *controlled) rule(s scope.Scope, change func(*frontier.Rule)) {
	r := c.rules[s]
	change(&r)
	if c.rules[s] = r; r == (frontier.Rule{}) {
		delete(c.rules, s)
	}
	if r.Limits == (scope.Limits{}) && s == scope.All() {
		c.bytes = 0
	}
}

func (c *controlled) crawl(id uint32, x frontier.Rule) {
	key := fmt.Sprintf("crawl %d", id)
	if c.more[key] = fmt.Sprint(x); x == (frontier.Rule{}) {
		delete(c.more, key)
	}
}

func (c *controlled) group(name string, x frontier.GroupSettings) {
	if c.more["group "+name] = fmt.Sprint(x); x == (frontier.GroupSettings{}) {
		delete(c.more, "group "+name)
	}
}

func (c *controlled) member(host, group string) {
	if c.more["member "+host] = group; group == "" {
		delete(c.more, "member "+host)
	}
}

// text is all of it in one spelling.
func (c *controlled) text() map[string]string {
	out := maps.Clone(c.more)
	out["bytes"] = fmt.Sprint(c.bytes)
	for s, r := range c.rules {
		until := r.BlockedUntil.UTC()
		r.BlockedUntil = time.Time{}
		out[s.String()] = fmt.Sprintf("%+v until %v", r, until)
	}
	return out
}

// control is a call, and what it makes of a frontier once it has returned.
type control struct {
	what string
	call func(*frontier.Frontier) error
	make func(*controlled)
}

// killScopes are scopes within each other, the widest first.
var killScopes = []scope.Scope{
	scope.All(), scope.Domain("example"), scope.Domain("a.example"), scope.Domain("www.a.example"), scope.Host("www.a.example"),
}

// nextControl draws a control.
func nextControl(r *rand.Rand) control {
	at := r.IntN(len(killScopes))
	s := killScopes[at]
	set := func(what string, change func(*frontier.Rule)) control {
		return control{fmt.Sprintf("%s %v", what, s), func(f *frontier.Frontier) error { return f.UpdateRule(s, change) },
			func(c *controlled) { c.rule(s, change) }}
	}
	change := func(what string, call func(*frontier.Frontier) error, change func(*frontier.Rule)) control {
		return control{fmt.Sprintf("%s %v", what, s), call, func(c *controlled) { c.rule(s, change) }}
	}
	switch r.IntN(19) {
	case 0:
		return change("pause", func(f *frontier.Frontier) error { return f.Pause(s) },
			func(r *frontier.Rule) { r.Paused = scope.On })
	case 1:
		return control{fmt.Sprintf("resume %v", s), func(f *frontier.Frontier) error { return f.Resume(s) }, func(c *controlled) {
			held := false
			for _, wider := range killScopes[:at] { // the closest that says anything counts
				if r := c.rules[wider]; r.Paused == scope.On || !r.BlockedUntil.IsZero() {
					held = true
				} else if r.Paused == scope.Off {
					held = false
				}
			}
			c.rule(s, func(r *frontier.Rule) {
				if r.Paused, r.BlockedUntil = scope.Unset, (time.Time{}); held {
					r.Paused = scope.Off
				}
			})
		}}
	case 2:
		until := time.Date(2060, 1, 1, r.IntN(1000), 0, 0, 0, time.UTC)
		return change("block", func(f *frontier.Frontier) error { return f.BlockUntil(s, until) },
			func(r *frontier.Rule) { r.BlockedUntil = until })
	case 3:
		d := frontier.FixedDelay(time.Duration(r.IntN(1000)) * time.Second)
		return set("delay", func(r *frontier.Rule) { r.Delay = d })
	case 4:
		n := r.IntN(20)
		return set("concurrency", func(r *frontier.Rule) { r.Concurrency = n })
	case 5:
		return change("clear", func(f *frontier.Frontier) error { return f.Clear(s) },
			func(r *frontier.Rule) { *r = frontier.Rule{} })
	case 6:
		id, x := uint32(r.IntN(4)), frontier.Rule{Weight: []int{0, 2, 3}[r.IntN(3)], Paused: scope.Switch(r.IntN(2)), Limits: drawLimits(r)}
		return control{fmt.Sprintf("crawl %d: %+v", id, x), func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.Crawl(id), func(r *frontier.Rule) { *r = x })
		}, func(c *controlled) { c.crawl(id, x) }}
	case 7:
		e := frontier.Entry{URL: fmt.Sprintf("http://%d.now/", r.Int64())}
		return control{"now " + e.URL, func(f *frontier.Frontier) error {
			_, err := f.CrawlNow(context.Background(), e)
			return err
		}, func(c *controlled) { c.more["now "+e.URL] = "waits" }}
	case 8:
		p := r.IntN(9)
		return set(fmt.Sprintf("priority %d", p), func(r *frontier.Rule) { r.Priority, r.Priorities = p, frontier.PriorityMap{} })
	case 9:
		from, to := 1+r.IntN(8), r.IntN(9)
		return set(fmt.Sprintf("priority %d for %d", to, from), func(r *frontier.Rule) { r.Priorities[from] = uint8(to) })
	case 10:
		name, x := fmt.Sprintf("g%d", r.IntN(3)), frontier.GroupSettings{Concurrency: r.IntN(3)}
		if r.IntN(2) == 0 {
			x.Delay = frontier.FixedDelay(time.Duration(r.IntN(1000)) * time.Second)
		}
		return control{fmt.Sprintf("group %s: %+v", name, x), func(f *frontier.Frontier) error { return f.SetGroup(name, x) },
			func(c *controlled) { c.group(name, x) }}
	case 11:
		host, group := fmt.Sprintf("m%d.member", r.IntN(3)), []string{"", "g0", "g1", "other"}[r.IntN(4)]
		return control{fmt.Sprintf("assign %s to %q", host, group), func(f *frontier.Frontier) error { return f.Assign(host, group) },
			func(c *controlled) { c.member(host, group) }}
	case 12:
		host := fmt.Sprintf("m%d.member", r.IntN(3))
		return control{"forget " + host, func(f *frontier.Frontier) error { return f.Forget(host) },
			func(c *controlled) { c.member(host, "") }}
	case 13:
		return drawDeletion(r)
	case 14:
		l := drawLimits(r)
		return set(fmt.Sprintf("limits %+v", l), func(r *frontier.Rule) { r.Limits = l })
	case 15:
		l := drawLimits(r)
		return set(fmt.Sprintf("host limits %+v", l), func(r *frontier.Rule) { r.HostLimits = l })
	default:
		return drawContact(r)
	}
}

// drawContact draws a contact after which the host is left alone, for one reason or
// another.
func drawContact(r *rand.Rand) control {
	host := fmt.Sprintf("c%d.clock", r.Int64())
	outcomes := []frontier.Outcome{
		{RetryAfter: time.Duration(1+r.IntN(100)) * time.Hour},
		{CrawlDelay: time.Duration(1+r.IntN(100)) * time.Hour},
		{Result: frontier.Failed, Failure: frontier.FailureTooMany},
		{Result: frontier.Failed, Failure: frontier.FailureConnect},
	}
	o := outcomes[r.IntN(len(outcomes))]
	o.Bytes = 1
	return control{"contact " + host, func(f *frontier.Frontier) error {
		l, err := f.Contact(context.Background(), host)
		if err != nil {
			return err
		}
		return f.Done(l, o)
	}, func(c *controlled) {
		if c.rules[scope.All()].Limits != (scope.Limits{}) {
			c.bytes++
		}
	}}
}

// clockRule lets the hosts of contacts run whatever wider rules say.
func clockRule(f *frontier.Frontier) error {
	return f.UpdateRule(scope.Domain("clock"), func(rule *frontier.Rule) { *rule = frontier.Rule{Paused: scope.Off, Delay: frontier.FixedDelay(0)} })
}

func openControls(t testing.TB, dir string) (*frontier.Frontier, func()) {
	db, err := spill.Open(dir, spill.Options{})
	require.NoError(t, err)
	f, err := frontier.Open(context.Background(), frontier.Options{Spill: db, Delay: frontier.FixedDelay(0), HostConcurrency: 1})
	require.NoError(t, err)
	return f, func() {
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.NoError(t, db.Close())
	}
}

// TestControlsChild is the process that TestKillAfterControls kills. It reports on
// its standard output of each control that has returned: "k", and after a contact
// the host and the Unix milliseconds before which it is left alone.
func TestControlsChild(t *testing.T) {
	if *controlsChild == "" {
		t.Skip("only a part of TestKillAfterControls")
	}
	f, _ := openControls(t, *controlsChild)
	require.NoError(t, clockRule(f))
	r := rand.New(rand.NewPCG(*harness.Seed, 1))
	for n := 1; ; n++ {
		c := nextControl(r)
		if err := c.call(f); err != nil {
			fmt.Fprintf(os.Stdout, "%s: %v\n", c.what, err)
			return
		}
		line := "k"
		if host, ok := strings.CutPrefix(c.what, "contact "); ok {
			x, err := inspect.New(f).Host(context.Background(), host)
			require.NoError(t, err)
			line = fmt.Sprintf("k %s %d", host, x.Due.UnixMilli())
		}
		fmt.Fprintln(os.Stdout, line) // one write, no buffer
		if n == *controlsAfter {
			p, err := os.FindProcess(os.Getpid())
			require.NoError(t, err)
			require.NoError(t, p.Kill())
			select {}
		}
	}
}

func TestKillAfterControls(t *testing.T) {
	r := harness.NewRand(t)
	tries := trycount.Of(t)
	dir := t.TempDir()
	want := newControlled()
	want.rules[scope.Domain("clock")] = frontier.Rule{Paused: scope.Off, Delay: frontier.FixedDelay(0)}
	due := map[string]time.Time{}
	steps := 0
	for round := range *controlsRounds {
		seed, n := r.Uint64(), 1+r.IntN(12)
		args := []string{"-test.run=^TestControlsChild$", "-frontier.controls-child=" + dir, fmt.Sprintf("-frontier.seed=%d", seed)}
		if round%2 == 0 {
			args = append(args, "-frontier.controls-after="+strconv.Itoa(n))
		}
		done := runControls(t, args, n, due)
		steps += done

		child := rand.New(rand.NewPCG(seed, 1))
		for range done {
			nextControl(child).make(want)
		}
		after := want.clone()
		inFlight := nextControl(child)
		inFlight.make(after) // it was under way when the process died
		got := readControls(t, dir, due)
		if round%2 != 0 && fmt.Sprint(got) == fmt.Sprint(after.text()) {
			want.rules, want.more, want.bytes = after.rules, after.more, after.bytes
		}
		tries.Tried(1)
		require.Equal(t, want.text(), got, "round %d, after %d controls; then came %s", round, done, inFlight.what)
	}
	t.Logf("%d kills after %d controls; %d hosts asked for time", *controlsRounds, steps, len(due))
}

// runControls starts a process that controls a frontier and kills it after n
// controls, unless it does so itself. It returns how many were acknowledged, and
// notes in due which hosts must be left alone.
func runControls(t *testing.T, args []string, n int, due map[string]time.Time) (done int) {
	cmd := exec.Command(os.Args[0], args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	in := bufio.NewScanner(out)
	for in.Scan() {
		var host string
		var at int64
		if in.Text() != "k" {
			_, err := fmt.Sscanf(in.Text(), "k %s %d", &host, &at)
			require.NoError(t, err, in.Text())
			due[host] = time.UnixMilli(at)
		}
		if done++; done == n && len(args) == 3 {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.NoError(t, in.Err())
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit, "it was killed")
	require.GreaterOrEqual(t, done, n)
	return done
}

// readControls opens the store and returns what is set there, as text. No host may
// be contacted before its time.
func readControls(t *testing.T, dir string, due map[string]time.Time) map[string]string {
	f, closed := openControls(t, dir)
	defer closed()
	c := newControlled()
	for s, r := range f.Rules() {
		c.rules[s] = r
	}
	used, _ := inspect.New(f).Used(scope.All())
	c.bytes = used.Bytes
	for _, id := range inspect.New(f).Crawls() {
		x, _ := inspect.New(f).Crawl(id)
		c.crawl(id, x.Rule)
	}
	for i := range 3 {
		name, host := fmt.Sprintf("g%d", i), fmt.Sprintf("m%d.member", i)
		g, _ := inspect.New(f).Group(name)
		c.group(name, g.Settings)
		h, err := inspect.New(f).Host(context.Background(), host)
		if !errors.Is(err, frontier.ErrUnknownHost) {
			require.NoError(t, err, host)
		}
		c.member(host, h.Group)
	}
	for u, err := range inspect.New(f).URLs(context.Background(), scope.Domain("now"), "") {
		require.NoError(t, err)
		if u.Priority == frontier.Immediate {
			c.more["now "+u.Entry.URL] = "waits"
		}
	}
	for host, at := range due {
		x, err := inspect.New(f).Host(context.Background(), host)
		if !errors.Is(err, frontier.ErrUnknownHost) {
			require.NoError(t, err, host)
		}
		if at.After(time.Now()) {
			require.False(t, x.Due.Before(at), "%s may be contacted at %v, not before %v", host, x.Due, at)
		}
	}
	return c.text()
}
