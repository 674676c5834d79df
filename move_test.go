// This file tests rounds of moving that a failure meets.

package frontier_test

import (
	"testing"
	"testing/synctest"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

// A round of moving gives no home to a URL whose end is under way. If that fails after
// all, the round is off: its checkpoint would drop the log that has the URL.
func TestCommitFailsDuringARoundOfMoving(t *testing.T) {
	for name, o := range map[string]frontier.Outcome{"finished": {}, "tried again later": {Result: frontier.Failed}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := hookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
				w.add("http://a.example/")
				l := w.next()
				gate, failed := make(chan struct{}), false
				h.set(func(*frontier.Batch) error {
					<-gate
					if failed {
						return nil
					}
					failed = true
					return errDisk
				}, nil)
				done, moved := make(chan error, 1), make(chan error, 1)
				go func() { done <- w.f.Done(l, o) }()
				synctest.Wait()
				go func() { moved <- w.f.MoveNow(true) }()
				synctest.Wait()
				close(gate)
				require.ErrorIs(t, <-done, errDisk)
				require.Error(t, <-moved)
				w.add("http://b.example/")
				w = w.killed()
				require.ElementsMatch(t, []string{"http://a.example/", "http://b.example/"}, w.rest())
			})
		})
	}
}
