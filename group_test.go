package frontier_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// impatient are options without a delay of hosts.
func impatient() frontier.Options {
	return frontier.Options{Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(time.Second), Selector: frontier.Strict()}
}

// joined takes the next lease, which must be of this URL and come at this time, and
// joins it to a group that grants it.
func (w *world) joined(at time.Duration, url, group string) frontier.Lease {
	w.Helper()
	l := w.nextIs(at, url)
	require.NoError(w, w.f.Join(&l, group))
	return l
}

// Hosts of a group with the same priority get the same, however long the frontier is
// open.
func TestHostsOfAGroupComeInTheirTurn(t *testing.T) {
	for _, up := range []time.Duration{0, 1224 * time.Hour, 5 * 365 * 24 * time.Hour} {
		for _, s := range []frontier.Selector{frontier.Strict(), frontier.RoundRobin()} {
			w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Second), Selector: s})
			w.clk.Advance(up)
			for h := range 10 {
				host := fmt.Sprintf("h%d.example", h)
				require.NoError(t, w.f.Assign(host, "g"))
				for u := range 101 {
					w.add(fmt.Sprintf("http://%s/%d", host, u))
				}
			}
			got := map[string]int{}
			for range 1000 {
				l := w.next()
				got[l.Host]++
				w.fetched(l, 0, frontier.Outcome{})
			}
			for host, n := range got {
				require.Equal(t, 100, n, "%s after %v", host, up)
			}
			require.Len(t, got, 10)
		}
	}
}

func TestGroupHasSettingsOfItsOwn(t *testing.T) {
	inBothWorlds(t, impatient(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(10 * time.Second), Concurrency: 2}))
		w.add("http://a.example/1", "http://b.example/1", "http://c.example/1")
		a, b := w.joined(0, "http://a.example/1", "g"), w.joined(0, "http://b.example/1", "g")
		c := w.nextIs(0, "http://c.example/1")
		require.ErrorIs(t, w.f.Join(&c, "g"), frontier.ErrGroupBusy)
		w.fetched(c, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.add("http://a.example/2", "http://b.example/2")
		w.fetched(a, 2*time.Second, frontier.Outcome{}) // at 2 s
		w.fetched(b, 2*time.Second, frontier.Outcome{}) // at 4 s
		x, ok := w.f.Group("g")
		require.True(t, ok)
		require.Equal(t, 3, x.Hosts)
		require.Equal(t, dawn.Add(12*time.Second).UnixNano(), x.Due.UnixNano())
		w.fetched(w.nextIs(12*time.Second, "http://c.example/1"), 0, frontier.Outcome{})
		w.nextIs(14*time.Second, "http://a.example/2")
		w.nextIs(22*time.Second, "http://b.example/2")
	})
}

func TestGroupSettingsTakeEffectAtOnce(t *testing.T) {
	inBothWorlds(t, impatient(), func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://b.example/1", "http://c.example/1", "http://d.example/1")
		for _, h := range []string{"a", "b", "c", "d"} {
			require.NoError(t, w.f.Assign(h+".example", "g"))
		}
		one := w.next()
		w.nothingUntil(time.Second)
		require.NoError(t, w.f.SetGroup("g", frontier.GroupSettings{Concurrency: 3}))
		two, three := w.next(), w.next()
		require.Equal(t, time.Second, w.at())
		require.NoError(t, w.f.SetGroup("g", frontier.GroupSettings{}))
		w.fetched(one, time.Second, frontier.Outcome{}) // at 2 s
		w.nothingUntil(5 * time.Second)
		w.fetched(two, 0, frontier.Outcome{})
		w.nothingUntil(9 * time.Second)
		w.fetched(three, 0, frontier.Outcome{})
		w.next()
		require.Equal(t, 10*time.Second, w.at())
	})
}

func TestGroupSettingsAreDurable(t *testing.T) {
	w := newStoredWorld(t, impatient(), spill.Options{})
	s := frontier.GroupSettings{Delay: frontier.FixedDelay(time.Minute), Concurrency: 2}
	require.NoError(t, w.f.SetGroup("g", s))
	require.NoError(t, w.f.SetGroup("gone", s))
	require.NoError(t, w.f.SetGroup("gone", frontier.GroupSettings{}))
	for range 2 {
		w = w.killed()
		x, ok := w.f.Group("g")
		require.True(t, ok)
		require.Equal(t, s, x.Settings)
		_, ok = w.f.Group("gone")
		require.False(t, ok)
	}
	require.Equal(t, time.Duration(0), w.at())
	w.add("http://a.example/1", "http://b.example/1", "http://c.example/1")
	a := w.nextIs(0, "http://a.example/1")
	require.ErrorIs(t, w.f.Join(&a, "g"), frontier.ErrGroupBusy, "it may have been contacted before the crash")
	w.until(time.Minute)
	w.fetched(a, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
	w.fetched(w.joined(time.Minute, "http://a.example/1", "g"), 0, frontier.Outcome{})
	w.fetched(w.joined(time.Minute, "http://b.example/1", "g"), 0, frontier.Outcome{})
	c := w.nextIs(time.Minute, "http://c.example/1")
	require.ErrorIs(t, w.f.Join(&c, "g"), frontier.ErrGroupBusy)
	w.fetched(c, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
	w.reopen()
	w.nextIs(2*time.Minute, "http://c.example/1")
}

func TestExportHasGroupSettings(t *testing.T) {
	inBothWorlds(t, impatient(), func(t *testing.T, w *world) {
		s := frontier.GroupSettings{Delay: frontier.FactorDelay(2, time.Second, time.Minute), Concurrency: 2}
		require.NoError(t, w.f.SetGroup("g", s))
		var out bytes.Buffer
		require.NoError(t, w.f.Export(context.Background(), &out, frontier.ExportOptions{}))
		require.Contains(t, out.String(), `{"group":"g","delay":{"factor":2,"min":"1s","max":"1m0s"},"concurrency":2}`)
		other := newWorld(t, impatient())
		_, err := other.f.Import(context.Background(), &out, frontier.ImportOptions{})
		require.NoError(t, err)
		x, _ := other.f.Group("g")
		require.Equal(t, s, x.Settings)
	})
}

func TestBadGroupsAreRefused(t *testing.T) {
	w := newWorld(t, impatient())
	long := strings.Repeat("g", 256)
	for want, err := range map[string]error{
		"name has 0 bytes":   w.f.SetGroup("", frontier.GroupSettings{Concurrency: 1}),
		"name has 256 bytes": w.f.SetGroup(long, frontier.GroupSettings{Concurrency: 1}),
		"concurrency is -1":  w.f.SetGroup("g", frontier.GroupSettings{Concurrency: -1}),
		"1025; want 1 to":    w.f.SetGroup("g", frontier.GroupSettings{Concurrency: 1025}),
		"FixedDelay(-1s)":    w.f.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(-time.Second)}),
		"at most 720h":       w.f.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(721 * time.Hour)}),
		"cannot be stored":   w.f.SetGroup("g", frontier.GroupSettings{Delay: oddDelay{}}),
		"group name has 256": w.f.Assign("a.example", long),
		"host key has 0":     w.f.Assign("", "g"),
	} {
		require.ErrorContains(t, err, want)
	}
	_, ok := w.f.Group("g")
	require.False(t, ok)
	require.Zero(t, w.f.Stats().Groups)
}

type oddDelay struct{}

func (oddDelay) Delay(string, frontier.Outcome) time.Duration { return time.Second }
func (oddDelay) Max() time.Duration                           { return time.Second }

func TestAssignedHostsShareAGroup(t *testing.T) {
	inBothWorlds(t, impatient(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.Assign("a.example", "g")) // unknown
		w.add("http://a.example/1", "http://b.example/1", "http://c.example/1", "http://c.example/2")
		require.NoError(t, w.f.Assign("b.example", "g")) // waits
		w.fetched(w.nextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
		c := w.nextIs(0, "http://c.example/1")
		w.until(500 * time.Millisecond)
		require.NoError(t, w.f.Assign("c.example", "g")) // leased, while the group is left alone
		w.until(time.Second)
		b := w.nextIs(time.Second, "http://b.example/1")
		w.fetched(b, 0, frontier.Outcome{})
		w.until(1500 * time.Millisecond)
		w.fetched(c, 0, frontier.Outcome{}) // a contact of the group's, too
		w.nextIs(2500*time.Millisecond, "http://c.example/2")
	})
}

func TestLeasedHostTakesASlotOfItsNewGroup(t *testing.T) {
	inBothWorlds(t, impatient(), func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://b.example/1", "http://c.example/1")
		for host, group := range map[string]string{"a.example": "g", "b.example": "g", "c.example": "h"} {
			require.NoError(t, w.f.Assign(host, group))
		}
		a := w.nextIs(0, "http://a.example/1")
		require.NoError(t, w.f.Assign("a.example", "h"))
		w.nothingUntil(time.Second) // h's slot is taken, and g may have been contacted a moment ago
		w.nextIs(time.Second, "http://b.example/1")
		w.fetched(a, time.Second, frontier.Outcome{})
		w.nextIs(3*time.Second, "http://c.example/1")
	})
}

func TestHostMayLeaveItsGroup(t *testing.T) {
	inBothWorlds(t, impatient(), func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://b.example/1")
		require.NoError(t, w.f.Assign("a.example", "g"))
		require.NoError(t, w.f.Assign("b.example", "g"))
		w.nextIs(0, "http://a.example/1")
		w.nothingUntil(time.Second)
		require.NoError(t, w.f.Assign("b.example", ""))
		require.NoError(t, w.f.Assign("nobody.example", ""))
		w.nextIs(time.Second, "http://b.example/1")
	})
}

func TestAssignmentsLast(t *testing.T) {
	w := newStoredWorld(t, impatient(), spill.Options{})
	require.NoError(t, w.f.Assign("a.example", "g"))
	require.NoError(t, w.f.Assign("b.example", "g"))
	require.NoError(t, w.f.Assign("c.example", "g"))
	require.NoError(t, w.f.Assign("c.example", ""))
	w = w.killed()
	w.until(time.Minute)
	w.f.Stats()
	require.False(t, w.f.Resident("a.example"))
	w.reopen()
	for host, group := range map[string]string{"a.example": "g", "b.example": "g", "c.example": ""} {
		require.Equal(t, group, w.f.GroupOf(host), host)
	}
	w.add("http://a.example/1", "http://b.example/1")
	require.Equal(t, "g", w.f.GroupOf("a.example"))
	require.Equal(t, "g", w.f.GroupOf("b.example"))
	w.next()
	w.nothingUntil(2 * time.Minute)
}

func TestAssignedHostOfAReadIsMoved(t *testing.T) {
	w := newStoredWorld(t, impatient(), spill.Options{})
	w.add("http://a.example/1", "http://b.example/1")
	require.NoError(t, w.f.MoveNow(true))
	require.NoError(t, w.f.Assign("b.example", "g"))
	w.nextIs(0, "http://a.example/1")
	w.nextIs(0, "http://b.example/1")
}
