package serve

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
)

// deadHost fetches from a host that only fails, until nothing is left or a year has passed. end is how the client
// ends a lease with an attempt. It returns the contacts, and the greatest attempt of each URL.
func deadHost(t *testing.T, o frontier.Options, urls int, end func(attempt int) string) (took time.Duration, contacts int, attempts map[string]int) {
	clock := simclock.New(time.Now())
	o.Clock = clock
	f, err := frontier.Open(t.Context(), Frontier(o))
	require.NoError(t, err)
	s, err := New(f, Options{})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
	}()
	post := func(path, body string, x any) {
		r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, 200, w.Code, w.Body.String())
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), x))
	}
	var ignored any
	for i := range urls {
		post("/v1/urls", fmt.Sprintf(`{"url":"http://dead.example/%d"}`, i), &ignored)
	}
	began := clock.Now()
	attempts = map[string]int{}
	for clock.Now().Sub(began) < 365*24*time.Hour {
		var a struct {
			Leases []struct {
				Lease, URL string
				Attempt    int
			}
			Next      float64 `json:"next_s"`
			Exhausted bool
		}
		post("/v1/leases", `{}`, &a)
		if a.Exhausted {
			break
		}
		if len(a.Leases) == 0 {
			require.NotZero(t, a.Next)
			clock.Advance(time.Duration(a.Next * 1e9))
		}
		for _, l := range a.Leases {
			contacts++
			assert.Equal(t, attempts[l.URL]+1, l.Attempt, "each try counts, also a probe")
			attempts[l.URL] = l.Attempt
			post("/v1/leases/"+l.Lease+"/done", end(l.Attempt), &ignored)
		}
	}
	return clock.Now().Sub(began), contacts, attempts
}

// A client that gives a URL up by its attempt is through with a dead host after as many tries of each.
func TestAttemptsOfADeadHostAreCounted(t *testing.T) {
	took, contacts, _ := deadHost(t, frontier.Options{Quarantine: frontier.Quarantine{Forever: true}}, 12, func(attempt int) string {
		if attempt >= 3 {
			return `{"result":"gone","duration_s":1}`
		}
		return `{"result":"failed","failure":"dns","duration_s":1}`
	})
	t.Log(took, contacts)
	assert.Equal(t, 3*12, contacts)
	assert.Less(t, took, 30*24*time.Hour)
}

// A host whose probes fail is given up, as its operator has set it, whatever its clients do.
func TestADeadHostIsGivenUp(t *testing.T) {
	never := func(int) string { return `{"result":"failed","failure":"connect","duration_s":1}` }
	for name, x := range map[string]struct {
		o     frontier.Options
		least time.Duration
		most  time.Duration
	}{
		"after ten probes":   {frontier.Options{}, 90 * time.Hour, 110 * time.Hour},
		"after two probes":   {frontier.Options{Quarantine: frontier.Quarantine{Probes: 2}}, 30 * time.Minute, 2 * time.Hour},
		"after three tries":  {frontier.Options{Retry: frontier.Retries(3, 0)}, time.Second, 110 * time.Hour},
		"never, if so asked": {frontier.Options{Quarantine: frontier.Quarantine{Forever: true}}, 365 * 24 * time.Hour, 367 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			took, contacts, attempts := deadHost(t, x.o, 8, never)
			t.Log(took, contacts, attempts)
			assert.GreaterOrEqual(t, took, x.least)
			assert.LessOrEqual(t, took, x.most)
		})
	}
}
