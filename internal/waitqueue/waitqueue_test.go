package waitqueue

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Waiters get what is given in the order in which they came, each one thing, and those
// that left get nothing.
func TestFirstInFirstServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var waiting, gone []*Waiter[int]
		given := 0
		t.Repeat(map[string]func(*rapid.T){
			"come": func(*rapid.T) { waiting = append(waiting, q.Push()) },
			"leave": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip("nobody waits")
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who")
				q.Remove(waiting[i])
				gone = append(gone, waiting[i])
				waiting = slices.Delete(waiting, i, i+1)
			},
			"give": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip("nobody waits")
				}
				given++
				q.Give(&given)
				require.Equal(t, given, <-waiting[0].Granted)
				require.False(t, waiting[0].Waits())
				waiting = waiting[1:]
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(waiting) == 0, q.Empty())
				for _, w := range waiting {
					require.True(t, w.Waits())
				}
				for _, w := range gone {
					require.False(t, w.Waits())
					require.Empty(t, w.Granted)
				}
			},
		})
		last := -1
		q.GiveAll(&last)
		require.True(t, q.Empty())
		for _, w := range waiting {
			require.Equal(t, last, <-w.Granted)
		}
	})
}
