package model

import (
	"context"
	"errors"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Look compares the reported state of a host and its URLs with the model.
func (m *model) Look(t *rapid.T) {
	_, err := m.f.Add(context.Background()) // what is on its way arrives
	require.NoError(t, err)
	name := m.drawHost()
	waits := map[string]int{}
	for _, it := range m.waiting[name] {
		waits[it.url] = m.served(it)
	}
	listed := map[string]int{}
	for u, err := range inspect.New(m.f).URLs(context.Background(), scope.Host(name), "") {
		require.NoError(t, err)
		require.NotContains(t, listed, u.Entry.URL, "listed twice")
		listed[u.Entry.URL] = u.Priority
	}
	require.Equal(t, waits, listed, "waiting URLs of %s and their priorities", name)
	m.lookAtHost(t, name)
	m.lookAtURL(t)
}

func (m *model) lookAtHost(t *rapid.T, name string) {
	x, err := inspect.New(m.f).Host(context.Background(), name)
	if errors.Is(err, frontier.ErrUnknownHost) {
		require.Empty(t, m.waiting[name])
		return
	}
	require.NoError(t, err)
	require.EqualValues(t, len(m.waiting[name]), x.Waiting)
	h := m.host(name)
	leased := 0
	if h.lease != nil {
		leased = 1
	}
	require.Equal(t, leased, x.Leased)
	until, paused := m.held(scopesOf(name))
	limited, spent := m.limited(name)
	until = later(until, limited)
	blocked := !until.IsZero() && until.After(m.now())
	free, ok := m.free(name)
	switch {
	case len(m.waiting[name]) > 0 && spent && !paused:
		require.Equal(t, inspect.ReasonLimit.String(), x.Reason.String())
	case len(m.waiting[name]) > 0 && (paused || m.running(m.waiting[name]) == 0):
		require.Equal(t, inspect.ReasonPaused.String(), x.Reason.String())
	case h.lease != nil:
		require.Equal(t, inspect.ReasonLeased.String(), x.Reason.String())
	case len(m.waiting[name]) == 0:
		require.Contains(t, []inspect.Reason{inspect.ReasonNothing, inspect.ReasonNotBefore}, x.Reason)
	case !ok && !blocked:
		require.Contains(t, []inspect.Reason{inspect.ReasonGroup, inspect.ReasonBackQueue}, x.Reason) // the latter until a call looked at it
	case ok && free.After(m.now()) && m.hold.Before(m.now()) && !blocked && h.group == "":
		require.True(t, x.Until.Equal(free), "%v until %v, want %v", x.Reason, x.Until, free)
	}
}

func (m *model) lookAtURL(t *rapid.T) {
	url, name, _ := m.draw()
	want := inspect.URLKnown
	if !m.known[url] {
		want = inspect.URLUnknown
	}
	if _, kept := m.kept[url]; kept {
		want = inspect.URLFinished
	}
	for _, it := range m.waiting[name] {
		if it.url == url {
			want = inspect.URLWaiting
		}
	}
	for _, it := range m.scheduled {
		if it.url == url {
			want = inspect.URLScheduled
		}
	}
	if l := m.host(name).lease; l != nil && l.item != nil && l.item.url == url && !l.forgotten {
		want = inspect.URLLeased
	}
	s, err := inspect.New(m.f).Status(context.Background(), entry(url, 0))
	require.NoError(t, err)
	require.Equal(t, want.String(), s.State.String(), url)
}
