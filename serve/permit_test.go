package serve

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// Nothing is handed out or extended that is not permitted, and what was withheld waits again.
func TestNothingIsHandedOutWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		var refusal error
		s := bornAfter(t, Options{Permit: func(_ context.Context, end time.Time) error { until = end; return refusal }}, func(*frontier.Frontier) {})
		leases, err := s.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", Lease: 40 * time.Second})
		require.NoError(t, err)
		require.Len(t, leases, 1)
		require.Equal(t, leases[0].Deadline, until)

		refusal = errors.New("another has taken over")
		_, err = s.Take(t.Context(), "bot", frontier.TakeOptions{Host: "b.example"})
		require.ErrorIs(t, err, ErrWithheld)
		require.ErrorIs(t, err, refusal)
		require.Equal(t, http.StatusServiceUnavailable, s.ask("/v1/leases", `{"hosts":1}`))
		require.Equal(t, http.StatusServiceUnavailable, s.ask("/v1/hosts/d.example/contact", `{"wait_s":1}`))
		require.Equal(t, http.StatusServiceUnavailable, s.ask("/v1/leases/"+leases[0].ID()+"/extend", `{"lease_s":50}`))
		require.EqualValues(t, 5, s.f.Stats().Waiting)

		refusal = nil
		require.Equal(t, []string{"b.example"}, s.hosts(frontier.TakeOptions{Host: "b.example"}))
	})
}
