package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

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
		require.NoError(t, s.Ready())
		require.Zero(t, until, "nothing is handed out for that")

		refusal = errors.New("another has taken over")
		_, err = s.Take(t.Context(), "bot", frontier.TakeOptions{Host: "b.example"})
		require.ErrorIs(t, err, ErrWithheld)
		require.ErrorIs(t, err, refusal)
		require.Equal(t, http.StatusServiceUnavailable, s.ask("/v1/leases", `{"hosts":1}`))
		require.Equal(t, http.StatusServiceUnavailable, s.ask("/v1/hosts/d.example/contact", `{"wait_s":1}`))
		require.Equal(t, http.StatusServiceUnavailable, s.ask("/v1/leases/"+leases[0].ID()+"/extend", `{"lease_s":50}`))
		require.EqualValues(t, 5, s.f.Stats().Waiting)
		ready := httptest.NewRecorder()
		s.Handler().ServeHTTP(ready, httptest.NewRequest("GET", "http://localhost/readyz", nil))
		require.Equal(t, http.StatusServiceUnavailable, ready.Code)
		require.Contains(t, ready.Body.String(), "another has taken over")

		refusal = nil
		require.NoError(t, s.Ready())
		require.Equal(t, []string{"b.example"}, s.hosts(frontier.TakeOptions{Host: "b.example"}))
	})
}

// The leases of a server on another machine last as long as they did there, whatever its clock shows.
func TestLeasesOfAnotherMachineLastAsLong(t *testing.T) {
	for _, off := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "contacts")
			s := bornAfter(t, Options{Contacts: path}, func(*frontier.Frontier) {})
			leases, err := s.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", Lease: 40 * time.Second})
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			// The other machine's clock, which wrote the file, differs.
			ms := func(at time.Time) string { return fmt.Sprint(at.UnixMilli() + 1) }
			moved := strings.Replace(string(text), ms(leases[0].Deadline), ms(leases[0].Deadline.Add(off)), 1)
			require.Equal(t, off == 0, moved == string(text))
			other := filepath.Join(t.TempDir(), "contacts")
			require.NoError(t, os.WriteFile(other, []byte(moved), 0o600))
			next := bornAfter(t, Options{Contacts: other, ContactsNow: time.Now().Add(off)}, func(*frontier.Frontier) {})
			time.Sleep(39 * time.Second)
			require.Empty(t, next.hosts(frontier.TakeOptions{Host: "a.example"}))
			time.Sleep(time.Second + gap + time.Second)
			require.Equal(t, []string{"a.example"}, next.hosts(frontier.TakeOptions{Host: "a.example"}))
		})
	}
}

// A server whose clock is set ends in order, and so does the next one. The one after that knows how long leases last.
func TestLeasesLastAsLongThoughAClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{0, time.Hour, -time.Hour} {
		path, file := filepath.Join(t.TempDir(), "contacts"), time.Now()
		var left []*inherited
		for i := range 3 {
			var set time.Duration
			now := func() time.Time { // it shows another date, and time passes as before
				now := time.Now()
				x := now.Add(set)
				steady := func(t *time.Time) *int64 { return (*int64)(unsafe.Add(unsafe.Pointer(t), unsafe.Sizeof(uint64(0)))) }
				*steady(&x) = *steady(&now)
				return x
			}
			x := contacts{now: now, ahead: now().Sub(file)}
			var err error
			left, _, err = x.begin(path, now())
			require.NoError(t, err)
			if i == 0 {
				require.NoError(t, x.began(t.Context(), "bot", frontier.Lease{Host: "a.example", LeasedAt: now(), Deadline: now().Add(time.Minute)}))
			}
			set = by
			require.NoError(t, x.close())
			file = now().Round(0)
		}
		require.Len(t, left, 1, by)
		require.InDelta(t, 60, time.Until(left[0].until).Seconds(), 5, by)
	}
}
