// This file tests that the frontier's clock is the only one.

package console_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
	"github.com/seed-7440039f/frontier/simclock"
)

func TestTheFrontierHasTheClock(t *testing.T) {
	clock := simclock.New(time.Date(1999, 12, 31, 12, 0, 0, 0, time.UTC)) // all that is later has passed by the machine's
	w := &world{w: console.NewWatch()}
	var err error
	w.f, err = frontier.Open(t.Context(), frontier.Options{Clock: clock, OnEvent: w.w.Event, Delay: frontier.FixedDelay(10 * time.Minute)})
	require.NoError(t, err)
	w.c, err = console.New(w.f, console.Options{Watch: w.w, Changed: func(context.Context, io.Reader, time.Time) (x changefeed.Result, err error) {
		return x, nil
	}})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, w.c.Close())
		assert.NoError(t, w.f.Check())
		require.NoError(t, w.f.Close())
	}()
	client := console.Direct(w.c)
	w.add(t, "http://a.example/1", "http://a.example/2", "http://b.example/", "http://c.example/")
	_, err = w.f.Add(t.Context(), frontier.Entry{URL: "http://d.example/", NotBefore: clock.Now().Add(2 * time.Hour)})
	require.NoError(t, err)

	_, err = client.Do(t.Context(), console.Action{Do: "block", Scope: "b.example", For: console.Duration(time.Hour)})
	require.NoError(t, err)
	until := clock.Now().Add(time.Hour)
	assert.Equal(t, until, w.f.RuleOf("b.example").BlockedUntil.UTC())
	rules, err := client.Rules(t.Context())
	require.NoError(t, err)
	require.Len(t, rules.Rules, 1)
	assert.Equal(t, until, rules.Rules[0].Rule.BlockedUntil)

	l, _, err := w.f.TryNext()
	require.NoError(t, err)
	require.Equal(t, "a.example", l.Host)
	clock.Advance(time.Minute)
	o := frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTimeout}
	require.NoError(t, w.f.Done(l, o))
	w.w.Outcome(l, o)
	clock.Advance(30 * time.Second)

	status, err := client.Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, clock.Now(), status.Now)
	assert.Equal(t, 90.0, status.Running)
	hosts, err := client.Hosts(t.Context(), console.HostsQuery{})
	require.NoError(t, err)
	assert.Equal(t, clock.Now(), hosts.Now)
	due, err := client.Due(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, clock.Now(), due.Now)
	host, err := client.Host(t.Context(), "b.example")
	require.NoError(t, err)
	assert.Contains(t, host.Why, "58 min 30 s")
	u, err := client.URL(t.Context(), 0, "http://d.example/")
	require.NoError(t, err)
	assert.Contains(t, u.Why, "1 h 58 min")
	_, err = w.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/3", NotBefore: clock.Now().Add(time.Minute)})
	require.NoError(t, err)
	u, err = client.URL(t.Context(), 0, "http://a.example/3")
	require.NoError(t, err)
	assert.Equal(t, "it waits for its time, in 1 min; its host is left alone for longer, for 9 min 30 s", u.Why)
	for path, says := range map[string]string{
		"/host?name=b.example": "that ends in 58 min 30 s", "/host?name=a.example": ", 30 s ago", "/url?url=http://d.example/": "<dd>in 1 h 58 min</dd>",
	} {
		page := ask(w.c.Page(), http.MethodGet, path, w.c.Token(), "")
		assert.Contains(t, page.Body.String(), says, path)
	}
	_, err = client.Changed(t.Context(), strings.NewReader(""), clock.Now().Add(time.Second))
	require.ErrorContains(t, err, "a time that has passed")
	_, err = client.Changed(t.Context(), strings.NewReader(""), clock.Now())
	require.NoError(t, err)

	clock.Advance(time.Hour)
	rules, err = client.Rules(t.Context())
	require.NoError(t, err)
	assert.Empty(t, rules.Rules)
}

// The encoder's own words would name types of Go.
func TestATimeWithoutItsUnit(t *testing.T) {
	var a console.Action
	require.ErrorContains(t, json.Unmarshal([]byte(`{"do":"block","for":3600}`), &a), `3600 is no time; want one with its unit, in quotes, as in "90s"`)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"do":"block","for":"3600"}`), &a), `"3600" is no time; want one with its unit`)
	require.NoError(t, json.Unmarshal([]byte(`{"do":"block","for":null}`), &a))
	require.NoError(t, json.Unmarshal([]byte(`{"do":"block","for":"1h"}`), &a))
	require.Equal(t, console.Duration(time.Hour), a.For)
}
