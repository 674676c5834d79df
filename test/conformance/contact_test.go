// This file tests that waiting for a host does not keep the frontier busy.

package conformance

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

// A Contact that waits while no call is in Next must not keep the timer firing because of URLs that
// only Next could take: virtual time would stand still.
func TestContactWaitsWithoutSpinning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(time.Second)})
		require.NoError(t, err)
		l, err := f.Contact(t.Context(), "a.example")
		require.NoError(t, err)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
		_, err = f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
		require.NoError(t, err)
		start := time.Now()
		l, err = f.Contact(t.Context(), "a.example")
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, f.Done(l, frontier.Outcome{}))
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	})
}
