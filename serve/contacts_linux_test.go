package serve

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill/spilltest"
)

// With Sync, a client may go on fetching through a loss of the server's power, too.
func TestContactsSurviveALossOfPower(t *testing.T) {
	v := spilltest.NewVolume(t, 16<<20, spilltest.Quiet)
	x := bornWith(t, Options{Contacts: filepath.Join(v.Dir, "contacts"), Sync: true})
	after := func() []string {
		left := v.PowerLoss(t)
		defer left.Unmount()
		y := born(t, filepath.Join(left.Dir, "contacts"))
		defer y.Close()
		return y.hosts(frontier.TakeOptions{})
	}
	leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example"})
	require.NoError(t, err)
	require.Equal(t, []string{"b.example", "c.example"}, after())

	require.NoError(t, x.contacts.rewrite(leases[0].LeasedAt))
	require.Equal(t, []string{"b.example", "c.example"}, after(), "the shorter file has taken its place")

	_, err = x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "b.example"})
	require.NoError(t, err)
	require.Equal(t, []string{"c.example"}, after())
	require.NoError(t, x.Service.Close())
	v.Unmount()
}
