package politeness

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
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
		x, ok := w.F.Group("g")
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
		x, ok := w.F.Group("g")
		require.True(t, ok)
		require.Equal(t, s, x.Settings)
		_, ok = w.F.Group("gone")
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
		require.NoError(t, w.F.Export(context.Background(), &out, frontier.ExportOptions{}))
		require.Contains(t, out.String(), `{"group":"g","delay":{"factor":2,"min":"1s","max":"1m0s"},"concurrency":2}`)
		other := harness.NewWorld(t, impatient())
		_, err := other.F.Import(context.Background(), &out, frontier.ImportOptions{})
		require.NoError(t, err)
		x, _ := other.F.Group("g")
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
		"FixedDelay(-1s)":    w.F.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(-time.Second)}),
		"at most 720h":       w.F.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(721 * time.Hour)}),
		"cannot be stored":   w.F.SetGroup("g", frontier.GroupSettings{Delay: oddDelay{}}),
		"group name has 256": w.F.Assign("a.example", long),
		"host key has 0":     w.F.Assign("", "g"),
	} {
		require.ErrorContains(t, err, want)
	}
	_, ok := w.F.Group("g")
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

func TestLeasedHostTakesASlotOfItsNewGroup(t *testing.T) {
	harness.InBothWorlds(t, impatient(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1", "http://c.example/1")
		for host, group := range map[string]string{"a.example": "g", "b.example": "g", "c.example": "h"} {
			require.NoError(t, w.F.Assign(host, group))
		}
		a := w.NextIs(0, "http://a.example/1")
		require.NoError(t, w.F.Assign("a.example", "h"))
		w.NothingUntil(time.Second) // h's slot is taken, and g may have been contacted a moment ago
		w.NextIs(time.Second, "http://b.example/1")
		w.Fetched(a, time.Second, frontier.Outcome{})
		w.NextIs(3*time.Second, "http://c.example/1")
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
		require.Equal(t, group, hook.Of(w.F).GroupOf(host), host)
	}
	w.Add("http://a.example/1", "http://b.example/1")
	require.Equal(t, "g", hook.Of(w.F).GroupOf("a.example"))
	require.Equal(t, "g", hook.Of(w.F).GroupOf("b.example"))
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
