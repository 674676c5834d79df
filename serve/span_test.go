// This file tests that times cross the wire as spans.

package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
)

// inBubble serves a frontier, with a delay of 10 s and leases of 30 s, in a bubble of synctest.
func inBubble(t *testing.T, test func(t *testing.T, s *Service, post func(path, body string) map[string]any)) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), Frontier(frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)}))
		require.NoError(t, err)
		s, err := New(f, Options{})
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, s.Close())
			assert.NoError(t, f.Check())
			assert.NoError(t, f.Close())
		})
		test(t, s, func(path, body string) (m map[string]any) {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body)))
			assert.Equal(t, http.StatusOK, w.Code, w.Body.String())
			assert.NoError(t, json.Unmarshal(w.Body.Bytes(), &m))
			return m
		})
	})
}

func TestSpansOfALease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, post func(path, body string) map[string]any) {
		leased := func(m map[string]any) map[string]any {
			require.Len(t, m["leases"], 1, m)
			return m["leases"].([]any)[0].(map[string]any)
		}
		post("/v1/urls", `[{"url":"http://a.example/1"},{"url":"http://a.example/2","not_before_s":7},{"url":"http://a.example/3","not_before_s":7}]`)
		l := leased(post("/v1/leases", `{"wait_s":20}`))
		assert.Equal(t, []any{30.0, 0.0}, []any{l["lease_s"], l["sent_s"]})
		time.Sleep(5 * time.Second)
		post("/v1/leases/"+l["lease"].(string)+"/done", `{"ended_ago_s":3}`)

		assert.InDelta(t, 2, post("/v1/leases", `{}`)["next_s"], 0.002, "the URL waits for that long, and its host for longer")
		l = leased(post("/v1/leases", `{"wait_s":20}`)) // 10 s after the end
		assert.InDelta(t, 7, l["sent_s"], 0.002)
		assert.InDelta(t, 30, l["lease_s"], 0.002)
		assert.InDelta(t, 0, l["late_s"], 0.002)
		assert.InDelta(t, 59, post("/v1/leases/"+l["lease"].(string)+"/extend", `{"lease_s":59}`)["lease_s"], 0.002)
		time.Sleep(time.Second)
		post("/v1/leases/"+l["lease"].(string)+"/done", `{"ended_ago_s":4000}`) // before the lease: by a clock that was set

		began := time.Now()
		l = leased(post("/v1/leases", `{"wait_s":20}`))
		assert.Equal(t, 10*time.Second, time.Since(began))
		post("/v1/leases/"+l["lease"].(string)+"/done", `{"result":"put_off","next_s":100}`)
		assert.InDelta(t, 40, post("/v1/leases", `{"wait_s":60}`)["next_s"], 0.002)
	})
}

// Spans are by the frontier's clock, also if that is not the system's.
func TestSpansAreByTheFrontiersClock(t *testing.T) {
	clock := simclock.New(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC))
	x := serveFrontier(t, frontier.Options{Clock: clock, Delay: frontier.FixedDelay(10 * time.Second)}, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}
{"url":"http://a.example/2","not_before_s":20}`)
	m := x.ok("POST", "/v1/leases", `{"lease_s":30}`)
	lease := m["leases"].([]any)[0].(map[string]any)
	assert.Equal(t, 30.0, lease["lease_s"])
	assert.Len(t, x.s.Clients(), 1)
	clock.Advance(2 * time.Second)
	x.ok("POST", "/v1/leases/"+lease["lease"].(string)+"/done", `{"result":"visited","duration_s":1}`)
	assert.InDelta(t, 18, x.ok("POST", "/v1/leases", `{}`)["next_s"], 0.01)
	clock.Advance(18 * time.Second)
	assert.Len(t, x.ok("POST", "/v1/leases", `{}`)["leases"], 1)
}

func TestOptionsBelowZero(t *testing.T) {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{}))
	require.NoError(t, err)
	for _, o := range []Options{{MaxBuffered: -1}, {MaxRequests: -1}} {
		_, err := New(f, o)
		require.ErrorContains(t, err, "want 0 or more")
	}
	require.NoError(t, f.Close())
}
