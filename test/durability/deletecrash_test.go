// This file deletes at moments after which a crash is hard to survive.

package durability

import (
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// interrupted is a Spill that calls a function once, before it packs.
type interrupted struct {
	storage.Spill
	before func()
}

func (s *interrupted) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
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
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	s := &interrupted{Spill: w.Machine.Store}
	harness.Ended(t, w.F)
	w.Options.Spill = s
	f, err := frontier.Open(t.Context(), w.Options)
	require.NoError(t, err)
	w.F = f
	w.Add("http://a.gone/1", "http://b.example/1")
	s.before = func() {
		w.Add("http://a.gone/2")
		n, err := f.Delete(t.Context(), scope.Domain("gone"))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
	}
	require.NoError(t, hook.Of(f).MoveNow(true))
	x := w.Killed()
	require.Equal(t, []string{"http://b.example/1"}, x.Rest())
	require.NoError(t, x.F.Check())
	require.Equal(t, []string{"http://b.example/1"}, w.Rest())
	harness.Ended(t, f)
}
