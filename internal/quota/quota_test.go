package quota

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// charge is one entry of the naive model's list: what is used in the present period.
type charge struct {
	Amount
	lease uint64 // of a hand-out; 0: of the end of one
}

// A naive usage lists everything that counts in the period, and adds it up.
func TestUsageAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		youngest := rapid.Uint64Range(0, 3).Draw(t, "leases before")
		u := New(youngest)
		limits := &Limits{Served: 3}
		var out []uint64
		for n := range youngest {
			out = append(out, n+1)
		}
		var list []charge
		var since, now int64
		reached := false
		add := func(x charge) {
			if len(list) == 0 {
				since = now
			}
			list = append(list, x)
		}
		over := func() bool { return len(list) > 0 && limits.Period > 0 && now-since >= int64(limits.Period) }
		end := func() {
			if over() {
				list = nil
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) { now += rapid.Int64Range(0, 30).Draw(t, "ns") },
			"limits": func(t *rapid.T) {
				require.Equal(t, over(), u.EndPeriod(limits, youngest, now))
				end()
				n := rapid.Int64Range(0, 4)
				limits = &Limits{Served: n.Draw(t, "served"), Bytes: 10 * n.Draw(t, "bytes"), Errors: n.Draw(t, "errors"), Period: time.Duration(20 * n.Draw(t, "period"))}
			},
			"hand out": func(t *rapid.T) {
				youngest++
				out = append(out, youngest)
				end()
				changed, counted := u.Charge(limits, Amount{Served: 1}, youngest, youngest, now)
				require.True(t, changed && counted)
				add(charge{Amount{Served: 1}, youngest})
			},
			"lease ends": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("there is none")
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "i")
				lease := out[i]
				out = slices.Delete(out, i, i+1)
				wasOver := over()
				end()
				a := Amount{Bytes: rapid.Int64Range(0, 20).Draw(t, "bytes"), Errors: rapid.Int64Range(0, 1).Draw(t, "errors")}
				at := slices.IndexFunc(list, func(x charge) bool { return x.lease == lease })
				want := a != Amount{}
				if want {
					add(charge{Amount: a})
				}
				if rapid.Bool().Draw(t, "uncontacted") {
					a.Served = -1
					if at >= 0 {
						list, want = slices.Delete(list, at, at+1), true
					}
				}
				changed, counted := u.Charge(limits, a, lease, youngest, now)
				require.Equal(t, want, counted)
				require.Equal(t, want || wasOver, changed)
			},
			"stored and restored": func(t *rapid.T) {
				x := New(youngest)
				x.Restore(u.Used(), u.Since(), u.Begun())
				u = x
				for i := range list {
					list[i].lease = 0 // leases of before do not count
				}
				what, _ := u.Spent(limits, now)
				reached = what != ""
			},
			"": func(t *rapid.T) {
				var sum Amount
				for _, x := range list {
					sum = Amount{sum.Served + x.Served, sum.Bytes + x.Bytes, sum.Errors + x.Errors}
				}
				require.True(t, u.Valid())
				require.Equal(t, len(list) > 0, u.Begun())
				require.Equal(t, sum, u.Used())
				if len(list) > 0 {
					require.Equal(t, since, u.Since())
				}
				require.Equal(t, over(), u.Over(limits, now))
				want := ""
				for _, x := range []struct {
					what    string
					n, most int64
				}{{"served", sum.Served, limits.Served}, {"bytes", sum.Bytes, limits.Bytes}, {"errors", sum.Errors, limits.Errors}} {
					if want == "" && x.most > 0 && x.n >= x.most && !over() {
						want = x.what
					}
				}
				turn, what, until := u.Turn(limits, now)
				require.Equal(t, want, what)
				switch {
				case want == "":
					require.Equal(t, instant.None, until)
				case limits.Period == 0:
					require.Equal(t, instant.Never, until)
				default:
					require.Equal(t, since+int64(limits.Period), until)
				}
				wantTurn := Same
				if reached != (want != "") {
					wantTurn = Lifted
					if want != "" {
						wantTurn = Reached
					}
				}
				require.Equal(t, wantTurn, turn)
				reached = want != ""
			},
		})
	})
}

func TestBytesDoNotOverflow(t *testing.T) {
	var u Usage
	l := &Limits{Bytes: instant.Never}
	u.Charge(l, Amount{Bytes: instant.Never}, 1, 1, 0)
	u.Charge(l, Amount{Bytes: 1}, 2, 2, 0)
	require.Equal(t, Amount{Bytes: instant.Never}, u.Used())
	require.True(t, u.Valid())
}

func TestMergeTakesTheGreater(t *testing.T) {
	l := &Limits{Period: 100}
	usage := func(a Amount, since int64) (u Usage) {
		u.Restore(a, since, true)
		return u
	}
	other := usage(Amount{Served: 5, Bytes: 1, Errors: 2}, 60)
	for name, x := range map[string]struct {
		u     Usage
		now   int64
		want  Amount
		since int64
	}{
		"not begun":         {Usage{}, 70, Amount{Served: 5, Bytes: 1, Errors: 2}, 60},
		"over":              {usage(Amount{Served: 9}, 0), 100, Amount{Served: 5, Bytes: 1, Errors: 2}, 60},
		"under way":         {usage(Amount{Served: 1, Bytes: 3, Errors: 2}, 10), 70, Amount{Served: 5, Bytes: 3, Errors: 2}, 60},
		"of the time ahead": {usage(Amount{Served: 9}, 10), 50, Amount{Served: 9, Bytes: 1, Errors: 2}, 50},
	} {
		x.u.Merge(l, &other, 7, x.now)
		require.Equal(t, x.want, x.u.Used(), name)
		require.Equal(t, x.since, x.u.Since(), name)
	}
}

func TestShift(t *testing.T) {
	var u Usage
	u.Restore(Amount{Served: 1}, 50, true)
	u.Shift(-20)
	require.EqualValues(t, 30, u.Since())
	u.BeginAfter(40)
	u.BeginAfter(10)
	require.EqualValues(t, 40, u.Since())
}
