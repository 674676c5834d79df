package room

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const limit = 1000

// isOpen reports whether a call that waits for s may look again.
func isOpen(s *Space) bool {
	select {
	case <-s.Free:
		return true
	default:
		return false
	}
}

func TestACallWaitsForARound(t *testing.T) {
	var r Room
	wait, refused := r.Ask(0, 900, limit, nil)
	require.Nil(t, wait)
	require.False(t, refused)
	wait, refused = r.Ask(850, 51, limit, nil)
	require.False(t, refused)
	require.False(t, isOpen(wait))
	other, _ := r.Ask(880, 30, limit, nil)
	require.Same(t, wait, other, "all wait for the same")
	r.Begins()
	r.Committed()
	require.False(t, isOpen(wait), "the round is not over")
	r.Ended(false, true, 100, limit, false)
	require.True(t, isOpen(wait))
	wait, refused = r.Ask(100, 51, limit, wait)
	require.Nil(t, wait)
	require.False(t, refused)
}

// What came during a round is not what it failed to free: those who wait go on to do so.
func TestWhatComesDuringARoundCanBeMoved(t *testing.T) {
	var r Room
	wait, _ := r.Ask(900, 51, limit, nil)
	r.Begins()
	r.Ended(false, true, 250, limit, false) // and 700 that came meanwhile
	require.True(t, isOpen(wait))
	wait, refused := r.Ask(950, 51, limit, wait)
	require.False(t, refused)
	require.NotNil(t, wait)
}

func TestALargeCallNeedsARoomThatIsNearlyEmpty(t *testing.T) {
	var r Room
	wait, refused := r.Ask(limit/4-1, 5*limit, limit, nil)
	require.Nil(t, wait)
	require.False(t, refused)
	wait, _ = r.Ask(limit/4, 5*limit, limit, nil)
	require.NotNil(t, wait)
}

func TestNoCallWaitsInVain(t *testing.T) {
	for name, end := range map[string]func(*Room){
		"the round failed":          func(r *Room) { r.Ended(true, false, 0, limit, false) },
		"it did not free enough":    func(r *Room) { r.Ended(false, true, 801, limit, false) },
		"nothing was left to move":  func(r *Room) { r.Ended(false, false, 0, limit, false) },
		"no round was worth a move": func(r *Room) { r.NotNeeded(801, limit, false) },
	} {
		t.Run(name, func(t *testing.T) {
			var r Room
			wait, _ := r.Ask(900, 51, limit, nil)
			r.Begins()
			end(&r)
			require.True(t, isOpen(wait))
			_, refused := r.Ask(900, 51, limit, wait)
			require.True(t, refused)
		})
	}
}

func TestAfterAFailedRoundOneWaitsNoMoreUntilItIsRetried(t *testing.T) {
	var r Room
	r.Begins()
	r.Ended(true, false, 0, limit, false)
	_, refused := r.Ask(900, 51, limit, nil)
	require.True(t, refused)
	_, refused = r.Ask(0, 51, limit, nil)
	require.False(t, refused)
	_, refused = r.Ask(900, 51, limit, nil)
	require.True(t, refused, "it rests still")
	r.Rested()
	_, _ = r.Ask(0, 51, limit, nil)
	wait, refused := r.Ask(900, 51, limit, nil)
	require.False(t, refused)
	require.NotNil(t, wait)
}

// A call that waits is let go by the end of the next round or commit, unless another one
// follows.
func TestNoCallIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Room
		var waits []*Space
		used := func() int64 { return rapid.Int64Range(0, limit).Draw(t, "used") }
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				if w, refused := r.Ask(used(), used(), limit, nil); w != nil {
					require.False(t, refused)
					waits = append(waits, w)
				}
			},
			"round": func(t *rapid.T) {
				r.Begins()
				failed, moved := rapid.Bool().Draw(t, "failed"), rapid.Bool().Draw(t, "moved")
				r.Ended(failed, moved, used(), limit, false)
				require.False(t, r.Waited())
			},
			"no round": func(t *rapid.T) { r.NotNeeded(used(), limit, rapid.Bool().Draw(t, "committing")) },
			"commit":   func(*rapid.T) { r.Committed() },
			"rest":     func(*rapid.T) { r.Rested() },
			"": func(t *rapid.T) {
				for _, w := range waits {
					require.NotEqual(t, w == r.space, isOpen(w))
				}
			},
		})
	})
}
