// This file deletes at moments after which a crash is hard to survive.

package frontier_test

import (
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// interrupted is a Spill that calls a function once, before it packs.
type interrupted struct {
	frontier.Spill
	before func()
}

func (s *interrupted) Pack(gen uint32, runs []frontier.Run) ([][]frontier.Part, error) {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	return s.Spill.Pack(gen, runs)
}

// A block that is packed while its records are deleted is younger than the
// deletion, and all of the queue's records in it are finished. After a crash what
// the log has behind it is dead all the same.
func TestDeletedBehindAFinishedPartAfterACrash(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	s := &interrupted{Spill: w.machine.Store}
	ended(t, w.f)
	w.opts.Spill = s
	f, err := frontier.Open(t.Context(), w.opts)
	require.NoError(t, err)
	w.f = f
	w.add("http://a.gone/1", "http://b.example/1")
	s.before = func() {
		w.add("http://a.gone/2")
		n, err := f.Delete(t.Context(), frontier.Domain("gone"))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
	}
	require.NoError(t, f.MoveNow(true))
	x := w.killed()
	require.Equal(t, []string{"http://b.example/1"}, x.rest())
	require.NoError(t, x.f.Check())
	require.Equal(t, []string{"http://b.example/1"}, w.rest())
	ended(t, f)
}
