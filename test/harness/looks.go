// This file reads the state of a world.

package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// Rest drains a world with a station's means.
func (w *World) Rest() []string {
	w.Helper()
	return (&Station{World: w}).Drain()
}

// Known returns everything that a frontier reports about itself, for comparison.
func (w *World) Known(hosts ...string) string {
	w.Helper()
	var b strings.Builder
	b.WriteString(Timeless(w.Export()))
	for s, r := range w.F.Rules() {
		fmt.Fprintf(&b, "%v %+v\n", s, r)
	}
	for _, h := range hosts {
		x, err := inspect.New(w.F).Host(context.Background(), h)
		fmt.Fprintf(&b, "%+v %v\n", x, err)
	}
	for _, c := range inspect.New(w.F).Crawls() {
		s, _ := inspect.New(w.F).Crawl(c)
		fmt.Fprintf(&b, "%d %+v\n", c, s)
	}
	g, ok := inspect.New(w.F).Group("g")
	fmt.Fprintf(&b, "%+v %v", g, ok)
	return b.String()
}

const Slow = 7*time.Second + 3*time.Millisecond // a Crawl-delay

// DormantHost is the name of host i.
func DormantHost(i int) string { return fmt.Sprintf("h%d.example", i) }

// Learns makes the frontier learn the Crawl-delay of hosts, and waits until they are due again.
func (w *World) Learns(hosts ...string) {
	w.Helper()
	w.Clock.Advance(time.Hour)
	for _, h := range hosts {
		l, err := w.F.Contact(context.Background(), h)
		require.NoError(w, err)
		require.NoError(w, w.F.Done(l, frontier.Outcome{CrawlDelay: Slow}))
	}
	w.Clock.Advance(time.Hour)
	w.Asleep()
}

// Asleep waits until all hosts that may leave memory have left.
func (w *World) Asleep() {
	w.Helper()
	for n := int64(-1); n != w.F.Stats().Hosts; w.F.Stats() {
		n = w.F.Stats().Hosts
	}
}

// HostRows counts the rows of hosts on the disk. The last batch's may be missing.
func (w *World) HostRows() (found int) {
	w.Machine.Damage(func(k, v []byte) []byte {
		if len(k) > 7 && string(k[5:7]) == "h:" {
			found++
		}
		return v
	})
	return found
}

// IsSlow requires that the host's Crawl-delay is known to the nanosecond. The host must be new or
// known to be due.
func (w *World) IsSlow(host string) {
	w.Helper()
	due := w.At()
	first, second := fmt.Sprintf("http://%s/%d/1", host, due), fmt.Sprintf("http://%s/%d/2", host, due)
	w.Add(first, second)
	w.Fetched(w.NextIs(due, first), 0, frontier.Outcome{})
	w.Fetched(w.NextIs(due+Slow, second), 0, frontier.Outcome{})
}

// GroupOf returns the group of a host, or "". If the host is not in memory, it is the group to which it
// will return.
func GroupOf(f *frontier.Frontier, host string) string { return described(f, host).Group }

// DueOf returns when a host may be contacted according to its own clock, without its group.
func DueOf(f *frontier.Frontier, host string) time.Time { return described(f, host).Due }

func described(f *frontier.Frontier, host string) inspect.Host {
	x, err := inspect.New(f).Host(context.Background(), host)
	if err != nil && !errors.Is(err, frontier.ErrUnknownHost) {
		panic(err)
	}
	return x
}

// Host describes a known host.
func (w *World) Host(name string) inspect.Host {
	w.Helper()
	x, err := inspect.New(w.F).Host(context.Background(), name)
	require.NoError(w, err)
	require.Equal(w, name, x.Host)
	return x
}

// Why requires the reason for which a host is not served, and when it ends; 0: unknown.
func (w *World) Why(name string, reason inspect.Reason, until time.Duration) {
	w.Helper()
	x := w.Host(name)
	require.Equal(w, reason.String(), x.Reason.String(), "%+v", x)
	if until == 0 {
		require.Zero(w, x.Until)
		return
	}
	require.Equal(w, until, x.Until.Sub(Dawn), "%+v", x)
}

// Knows requires that the URLs are known.
func (w *World) Knows(urls ...string) {
	w.Helper()
	var entries []frontier.Entry
	for _, u := range urls {
		entries = append(entries, frontier.Entry{URL: u})
	}
	n, err := w.F.Add(w.Context(), entries...)
	require.NoError(w, err)
	require.Zero(w, n)
}

// Quick returns options without delays.
func Quick() frontier.Options {
	return frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(9, time.Millisecond),
		Backoff: frontier.Backoff{Disabled: true}, Quarantine: frontier.Quarantine{Disabled: true}}
}

// URLs returns URLs of a host.
func URLs(host string, n int) (out []frontier.Entry) {
	for i := range n {
		out = append(out, frontier.Entry{URL: fmt.Sprintf("http://%s/%d", host, i)})
	}
	return out
}

// Served takes and finishes all URLs that are available now.
func (w *World) Served(o frontier.Outcome) (n int) {
	w.Helper()
	for {
		l, _, err := w.TryNext()
		if err != nil {
			return n
		}
		n++
		require.NoError(w, w.F.Done(l, o))
	}
}

// HeldFor requires that the crawl is over, except for n URLs.
func (w *World) HeldFor(n int64) {
	w.Helper()
	_, _, err := w.TryNext()
	var held *frontier.HeldError
	require.ErrorAs(w, err, &held)
	require.Equal(w, n, held.Held)
}

// RefusedEntries requires that an Add refused these entries, each because of a limit.
func RefusedEntries(t *testing.T, err error, indexes ...int) {
	t.Helper()
	var got []int
	for _, e := range frontier.EntryErrors(err) {
		require.ErrorIs(t, e, frontier.ErrLimit)
		got = append(got, e.Index)
	}
	require.Equal(t, indexes, got)
}

// Listed returns everything that URLs yields for a scope.
func (w *World) Listed(s scope.Scope, after string) (urls []string) {
	w.Helper()
	for u, err := range inspect.New(w.F).URLs(context.Background(), s, after) {
		require.NoError(w, err)
		urls = append(urls, u.Entry.URL)
	}
	return urls
}

// Status returns the status of a URL.
func (w *World) Status(url string) inspect.Status {
	w.Helper()
	s, err := inspect.New(w.F).Status(context.Background(), frontier.Entry{URL: url})
	require.NoError(w, err)
	return s
}

// IsState fails unless a URL is in this state.
func (w *World) IsState(want inspect.URLState, url string) {
	w.Helper()
	require.Equal(w, want.String(), w.Status(url).State.String(), url)
}

// NextAt is the next lease at exactly this time.
func (w *World) NextAt(at time.Duration) frontier.Lease {
	w.Helper()
	l := w.Next()
	require.Equal(w, at, w.At())
	return l
}

// Upcoming returns the hosts that come next, at most n, without URLs.
func (w *World) Upcoming(n int) (hosts []inspect.Host) {
	w.Helper()
	got, err := inspect.New(w.F).Upcoming(context.Background(), n, false)
	require.NoError(w, err)
	for _, u := range got {
		hosts = append(hosts, u.Host)
	}
	return hosts
}
