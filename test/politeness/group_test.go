package politeness

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// impatient are options without a delay of hosts.
func impatient() frontier.Options {
	return frontier.Options{Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(time.Second), Selector: selector.Strict()}
}

// Hosts of a group with the same priority get the same, however long the frontier is
// open.
func TestHostsOfAGroupComeInTheirTurn(t *testing.T) {
	for _, up := range []time.Duration{0, 1224 * time.Hour, 5 * 365 * 24 * time.Hour} {
		for _, s := range []frontier.Selector{selector.Strict(), selector.RoundRobin()} {
			w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Second), Selector: s})
			w.Clock.Advance(up)
			for h := range 10 {
				host := fmt.Sprintf("h%d.example", h)
				require.NoError(t, w.F.Assign(host, "g"))
				for u := range 101 {
					w.Add(fmt.Sprintf("http://%s/%d", host, u))
				}
			}
			got := map[string]int{}
			for range 1000 {
				l := w.Next()
				got[l.Host]++
				w.Fetched(l, 0, frontier.Outcome{})
			}
			for host, n := range got {
				require.Equal(t, 100, n, "%s after %v", host, up)
			}
			require.Len(t, got, 10)
		}
	}
}

func TestGroupHasSettingsOfItsOwn(t *testing.T) {
	harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(10 * time.Second), Concurrency: 2}))
		w.Add("http://a.example/1", "http://b.example/1", "http://c.example/1")
		a, b := w.Joined(0, "http://a.example/1", "g"), w.Joined(0, "http://b.example/1", "g")
		c := w.NextIs(0, "http://c.example/1")
		require.ErrorIs(t, w.F.Join(&c, "g"), frontier.ErrGroupBusy)
		w.Fetched(c, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.Add("http://a.example/2", "http://b.example/2")
		w.Fetched(a, 2*time.Second, frontier.Outcome{}) // at 2 s
		w.Fetched(b, 2*time.Second, frontier.Outcome{}) // at 4 s
		x, ok := inspect.New(w.F).Group("g")
		require.True(t, ok)
		require.Equal(t, 3, x.Hosts)
		require.Equal(t, harness.Dawn.Add(12*time.Second).UnixNano(), x.Due.UnixNano())
		w.Fetched(w.NextIs(12*time.Second, "http://c.example/1"), 0, frontier.Outcome{})
		w.NextIs(14*time.Second, "http://a.example/2")
		w.NextIs(22*time.Second, "http://b.example/2")
	})
}

func TestGroupSettingsTakeEffectAtOnce(t *testing.T) {
	harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1", "http://c.example/1", "http://d.example/1")
		for _, h := range []string{"a", "b", "c", "d"} {
			require.NoError(t, w.F.Assign(h+".example", "g"))
		}
		one := w.Next()
		w.NothingUntil(time.Second)
		require.NoError(t, w.F.SetGroup("g", frontier.GroupSettings{Concurrency: 3}))
		two, three := w.Next(), w.Next()
		require.Equal(t, time.Second, w.At())
		require.NoError(t, w.F.SetGroup("g", frontier.GroupSettings{}))
		w.Fetched(one, time.Second, frontier.Outcome{}) // at 2 s
		w.NothingUntil(5 * time.Second)
		w.Fetched(two, 0, frontier.Outcome{})
		w.NothingUntil(9 * time.Second)
		w.Fetched(three, 0, frontier.Outcome{})
		w.Next()
		require.Equal(t, 10*time.Second, w.At())
	})
}

func TestGroupSettingsAreDurable(t *testing.T) {
	w := harness.NewStoredWorld(t, impatient(), spill.Options{})
	s := frontier.GroupSettings{Delay: frontier.FixedDelay(time.Minute), Concurrency: 2}
	require.NoError(t, w.F.SetGroup("g", s))
	require.NoError(t, w.F.SetGroup("gone", s))
	require.NoError(t, w.F.SetGroup("gone", frontier.GroupSettings{}))
	for range 2 {
		w = w.Killed()
		x, ok := inspect.New(w.F).Group("g")
		require.True(t, ok)
		require.Equal(t, s, x.Settings)
		_, ok = inspect.New(w.F).Group("gone")
		require.False(t, ok)
	}
	require.Equal(t, time.Duration(0), w.At())
	w.Add("http://a.example/1", "http://b.example/1", "http://c.example/1")
	a := w.NextIs(0, "http://a.example/1")
	require.ErrorIs(t, w.F.Join(&a, "g"), frontier.ErrGroupBusy, "it may have been contacted before the crash")
	w.Until(time.Minute)
	w.Fetched(a, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
	w.Fetched(w.Joined(time.Minute, "http://a.example/1", "g"), 0, frontier.Outcome{})
	w.Fetched(w.Joined(time.Minute, "http://b.example/1", "g"), 0, frontier.Outcome{})
	c := w.NextIs(time.Minute, "http://c.example/1")
	require.ErrorIs(t, w.F.Join(&c, "g"), frontier.ErrGroupBusy)
	w.Fetched(c, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
	w.Reopen()
	w.NextIs(2*time.Minute, "http://c.example/1")
}

func TestExportHasGroupSettings(t *testing.T) {
	harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
		s := frontier.GroupSettings{Delay: frontier.FactorDelay(2, time.Second, time.Minute), Concurrency: 2}
		require.NoError(t, w.F.SetGroup("g", s))
		var out bytes.Buffer
		require.NoError(t, transfer.Export(context.Background(), w.F, &out, transfer.ExportOptions{}))
		require.Contains(t, out.String(), `{"group":"g","delay":{"factor":2,"min":"1s","max":"1m0s"},"concurrency":2}`)
		other := harness.NewWorld(t, impatient())
		_, err := transfer.Import(context.Background(), other.F, &out, transfer.ImportOptions{})
		require.NoError(t, err)
		x, _ := inspect.New(other.F).Group("g")
		require.Equal(t, s, x.Settings)
	})
}

func TestBadGroupsAreRefused(t *testing.T) {
	w := harness.NewWorld(t, impatient())
	long := strings.Repeat("g", 256)
	for want, err := range map[string]error{
		"name has 0 bytes":   w.F.SetGroup("", frontier.GroupSettings{Concurrency: 1}),
		"name has 256 bytes": w.F.SetGroup(long, frontier.GroupSettings{Concurrency: 1}),
		"concurrency is -1":  w.F.SetGroup("g", frontier.GroupSettings{Concurrency: -1}),
		"1025; want 1 to":    w.F.SetGroup("g", frontier.GroupSettings{Concurrency: 1025}),
		"FixedDelay is -1s":  w.F.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(-time.Second)}),
		"at most 720h":       w.F.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(721 * time.Hour)}),
		"cannot be stored":   w.F.SetGroup("g", frontier.GroupSettings{Delay: oddDelay{}}),
		"group name has 256": w.F.Assign("a.example", long),
		"host key has 0":     w.F.Assign("", "g"),
	} {
		require.ErrorContains(t, err, want)
	}
	_, ok := inspect.New(w.F).Group("g")
	require.False(t, ok)
	require.Zero(t, w.F.Stats().Groups)
}

type oddDelay struct{}

func (oddDelay) Delay(string, frontier.Outcome) time.Duration { return time.Second }

func (oddDelay) Max() time.Duration { return time.Second }

func TestAssignedHostsShareAGroup(t *testing.T) {
	harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.Assign("a.example", "g")) // unknown
		w.Add("http://a.example/1", "http://b.example/1", "http://c.example/1", "http://c.example/2")
		require.NoError(t, w.F.Assign("b.example", "g")) // waits
		w.Fetched(w.NextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
		c := w.NextIs(0, "http://c.example/1")
		w.Until(500 * time.Millisecond)
		require.NoError(t, w.F.Assign("c.example", "g")) // leased, while the group is left alone
		w.Until(time.Second)
		b := w.NextIs(time.Second, "http://b.example/1")
		w.Fetched(b, 0, frontier.Outcome{})
		w.Until(1500 * time.Millisecond)
		w.Fetched(c, 0, frontier.Outcome{}) // a contact of the group's, too
		w.NextIs(2500*time.Millisecond, "http://c.example/2")
	})
}

// The contact under a lease that is out goes on, wherever its host is assigned to meanwhile:
// it counts for the group that the lease was taken from, and for that of the host.
func TestLeasedHostCountsForBothGroups(t *testing.T) {
	for _, then := range []string{"h", "", "g", "i"} {
		t.Run("h, "+then, func(t *testing.T) {
			harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
				w.Assigned("a.example", "g")
				w.Assigned("b.example", "g")
				w.Assigned("c.example", "h")
				w.Add("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://c.example/1")
				ls, err := w.F.Take(context.Background(), frontier.TakeOptions{Host: "a.example", PerHost: 2})
				require.NoError(t, err)
				require.Len(t, ls, 2)
				w.Assigned("a.example", "h", then)
				held := map[string]int{"g": 1, "h": 1, then: 1}
				if then == "g" || then == "i" {
					held["h"] = 0 // it keeps its distance, as there may have been a contact
					w.NextIs(time.Second, "http://c.example/1")
					held["h"] = 1
				}
				leased := func(n int) {
					t.Helper()
					require.NoError(t, w.F.Check())
					for name := range held {
						if x, _ := inspect.New(w.F).Group(name); name != "" {
							require.Equal(t, n*held[name], x.Leased, name)
						}
					}
				}
				leased(1)
				w.NothingUntil(5 * time.Second)
				w.Fetched(ls[0], 0, frontier.Outcome{})
				leased(1)
				w.NothingUntil(8 * time.Second)
				w.Fetched(ls[1], 0, frontier.Outcome{})
				if held["h"] = 0; then == "g" || then == "i" {
					held["h"] = 1 // by c.example
				}
				held["g"], held["i"] = 0, 0
				leased(1)
				require.Equal(t, 9*time.Second, w.Next().LeasedAt.Sub(harness.Dawn))
			})
		})
	}
}

// A lease keeps its slot if it joins the group that it was taken from, wherever its host is
// assigned to meanwhile, and then the host is in that group.
func TestJoiningTheGroupOfTheLease(t *testing.T) {
	harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
		w.Assigned("a.example", "g")
		w.Add("http://a.example/1", "http://a.example/2")
		for _, taken := range []bool{false, true} { // no slot of h is free
			l := w.Next()
			if taken {
				w.Assigned("b.example", "h")
				w.Add("http://b.example/1")
				w.Next()
			}
			w.Assigned("a.example", "h")
			require.NoError(t, w.F.Join(&l, "g"))
			require.Equal(t, "g", l.Group)
			require.Equal(t, "g", w.Host("a.example").Group)
			h, _ := inspect.New(w.F).Group("h")
			require.Equal(t, harness.Btoi(taken), h.Leased)
			require.NoError(t, w.F.Check())
			w.Fetched(l, 0, frontier.Outcome{})
			w.Clock.Advance(2 * time.Second)
		}
	})
}

func TestHostMayLeaveItsGroup(t *testing.T) {
	harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1")
		require.NoError(t, w.F.Assign("a.example", "g"))
		require.NoError(t, w.F.Assign("b.example", "g"))
		w.NextIs(0, "http://a.example/1")
		w.NothingUntil(time.Second)
		require.NoError(t, w.F.Assign("b.example", ""))
		require.NoError(t, w.F.Assign("nobody.example", ""))
		w.NextIs(time.Second, "http://b.example/1")
	})
}

func TestAssignmentsLast(t *testing.T) {
	w := harness.NewStoredWorld(t, impatient(), spill.Options{})
	require.NoError(t, w.F.Assign("a.example", "g"))
	require.NoError(t, w.F.Assign("b.example", "g"))
	require.NoError(t, w.F.Assign("c.example", "g"))
	require.NoError(t, w.F.Assign("c.example", ""))
	w = w.Killed()
	w.Until(time.Minute)
	w.F.Stats()
	require.False(t, hook.Of(w.F).Resident("a.example"))
	w.Reopen()
	for host, group := range map[string]string{"a.example": "g", "b.example": "g", "c.example": ""} {
		require.Equal(t, group, harness.GroupOf(w.F, host), host)
	}
	w.Add("http://a.example/1", "http://b.example/1")
	require.Equal(t, "g", harness.GroupOf(w.F, "a.example"))
	require.Equal(t, "g", harness.GroupOf(w.F, "b.example"))
	w.Next()
	w.NothingUntil(2 * time.Minute)
}

func TestAssignedHostOfAReadIsMoved(t *testing.T) {
	w := harness.NewStoredWorld(t, impatient(), spill.Options{})
	w.Add("http://a.example/1", "http://b.example/1")
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	require.NoError(t, w.F.Assign("b.example", "g"))
	w.NextIs(0, "http://a.example/1")
	w.NextIs(0, "http://b.example/1")
}

// A Done that comes too late moves the clock of its group, too, as does one of a client that
// outlived the process of the frontier.
func TestLateDoneMovesItsGroupsClock(t *testing.T) {
	o := impatient()
	o.LeaseTime = time.Minute
	for _, name := range []string{"in time", "killed", "closed", "moved"} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, o, spill.Options{})
			w.Add("http://a.example/")
			l := w.Joined(0, "http://a.example/", "g")
			w.Clock.Advance(69 * time.Second)
			_, err := w.F.Add(context.Background()) // what has expired has ended
			require.NoError(t, err)
			switch name {
			case "killed":
				w = w.Killed()
				w.Clock.Advance(900 * time.Millisecond)
			case "closed":
				w.Reopen()
				w.Clock.Advance(900 * time.Millisecond)
			case "moved":
				w.Assigned("a.example", "h")
			}
			require.ErrorIs(t, w.F.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
			_, err = w.F.Delete(context.Background(), scope.All())
			require.NoError(t, err)
			require.NoError(t, w.F.Check())
			from := w.At() + time.Second
			w.Assigned("b.example", "g")
			w.Assigned("c.example", "h")
			w.Add("http://b.example/")
			w.NextIs(from, "http://b.example/")
			w.Add("http://c.example/")
			require.Equal(t, "c.example", w.Next().Host)
			require.Equal(t, from, w.At())
		})
	}
}
