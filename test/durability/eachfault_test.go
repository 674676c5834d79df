// This file lets each call to a store fail in turn, in each way in which it can.

package durability

import (
	"flag"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var eachFault = flag.Bool("frontier.each-fault", false, "let each call fail in each way; else in one of them, in turn")

// slowest is how long a call takes that does not fail.
const slowest = 3 * time.Second

// fault is a way in which a call fails.
type fault struct {
	name string
	err  error // nil: it is slow, and succeeds
}

func faultOf(err error) fault { return fault{err.Error(), fmt.Errorf("%w: %w", harness.ErrDisk, err)} }

var (
	plain    = fault{"plain", harness.ErrDisk}
	hesitant = fault{"slow", nil}
)

// fails runs test with call n of a kind failing, for each n until test reports that
// there is no such call, and returns how many there are.
func fails(t *testing.T, n *trycount.Counter, ways []fault, test func(t *testing.T, n int, w fault) (reached bool)) (calls int) {
	t.Helper()
	step := 1
	if harness.RaceEnabled && !*eachFault {
		step = 3 // some of them; without the race detector it is all
	}
	for i, reached := 1, true; reached; i += step {
		for k, w := range ways {
			if !*eachFault && i%len(ways) != k {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				reached = test(t, i, w)
				time.Sleep(slowest) // a call that no caller waits for any more ends
			})
			if t.Failed() {
				t.Fatalf("with call %d failing: %s", i, w.name)
			}
			if reached {
				n.Tried(1)
			}
		}
		calls = i - step
	}
	t.Logf("%d calls", calls)
	return calls
}

func newLedger(t *testing.T, n *trycount.Counter, m *spilltest.Machine) *ledger {
	clk := simclock.New(harness.Dawn)
	return &ledger{
		TB: t, n: n, in: map[string]bool{}, out: map[string]bool{}, maybe: map[string]bool{},
		w: &harness.World{
			TB: t, Clock: clk, Machine: m, Options: frontier.Options{
				Clock: clk, Spill: m.Store, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0),
			},
		},
	}
}

// Whichever call to the disk fails, and however: its caller gets the error, nothing acknowledged is
// lost, what failed can be repeated, nothing hangs.
func TestFailureOfEachDiskCall(t *testing.T) {
	n := trycount.Of(t)
	full, broken := faultOf(syscall.ENOSPC), faultOf(syscall.EIO)
	for _, c := range []struct {
		name  string
		point spilltest.Point
		ways  []fault
	}{
		{"write", spilltest.Write, []fault{plain, full, broken, faultOf(io.ErrShortWrite), hesitant}},
		{"sync", spilltest.Sync, []fault{plain, full, broken, hesitant}},
		{"read", spilltest.Read, []fault{plain, broken, faultOf(io.ErrUnexpectedEOF), hesitant}},
		{"open", spilltest.Open, []fault{plain, full, broken, faultOf(syscall.EMFILE), hesitant}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := fails(t, n, c.ways, func(t *testing.T, i int, w fault) bool {
				m := spilltest.OpenMemory(t, spill.Options{})
				g := newLedger(t, n, m)
				if w.err == nil {
					m.Faults.Before(c.point, i, func() { time.Sleep(slowest) })
				} else {
					m.Faults.FailNth(c.point, i, w.err)
				}
				before := m.Faults.Calls(c.point)
				g.life()
				reached := m.Faults.Calls(c.point)-before >= i
				m.Faults.Heal()
				g.shows(g.w.Rest())
				harness.Ended(t, g.w.F)
				return reached
			})
			require.Greater(t, calls, 3)
		})
	}
}

// The same for each call of any Spill: it fails before it has done anything, or when
// it has done all.
func TestFailureOfEachCallOfTheSpill(t *testing.T) {
	n := trycount.Of(t)
	life := func(t *testing.T, only string, i int, x trouble) (broke string) {
		m := spilltest.OpenMemory(t, spill.Options{})
		g := newLedger(t, n, m)
		b := &brittle{Spill: m.Store, only: only}
		g.w.Options.Spill = b
		b.breaks(i, x)
		g.life()
		broke = b.broke()
		b.breaks(0, trouble{})
		g.shows(g.w.Rest())
		harness.Ended(t, g.w.F)
		return broke
	}
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%t", late), func(t *testing.T) {
			fails(t, n, []fault{plain, hesitant}, func(t *testing.T, i int, w fault) bool {
				x := trouble{err: w.err, late: late}
				if w.err == nil {
					x.wait = slowest
				}
				return life(t, "", i, x) != ""
			})
		})
	}
	for _, what := range []string{
		"Recover", "Commit", "Checkpoint", "Pack", "PackTimed", "PackMarks", "Load", "LoadTimed", "Known", "Row", "Release",
		"Snapshot", "Snapshot.Records", "Snapshot.Batches", "Snapshot.Timed", "Snapshot.Rows",
	} {
		t.Run(what, func(t *testing.T) { // each method, whatever call numbers were passed over
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, what, life(t, what, 1, trouble{err: harness.ErrDisk}))
				n.Tried(1)
			})
		})
	}
}
