// This file tests what is kept of answers: for how long, by how many, and ahead of time.

package dns

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

func TestAnswersAreKeptForTheirTTL(t *testing.T) {
	s := serve(t, fixed(said{addrs: []string{"192.0.2.1", "2001:db8::1"}, ttl: 60}))
	r, c := resolver(t, Options{Servers: []string{s.addr}})
	for _, at := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {59 * time.Second, 2}, {time.Hour, 3}} {
		c.move(at.after)
		got, err := r.Lookup(t.Context(), "A.example.")
		require.NoError(t, err)
		assert.Equal(t, addrs("192.0.2.1", "2001:db8::1"), got)
		assert.Equal(t, at.asked, s.count("A a.example"))
		assert.Equal(t, at.asked, s.count("AAAA a.example"))
	}
	assert.Equal(t, Stats{Lookups: 5, Hits: 2, Queries: 6, Names: 1}, r.Stats())
}

func TestTTLBounds(t *testing.T) {
	ttl := map[string]uint32{"zero.example": 0, "long.example": 1 << 30, "odd.example": 1 << 31}
	s := serve(t, func(name string, _ dnsmessage.Type) said { return said{addrs: []string{"192.0.2.1"}, ttl: ttl[name]} })
	r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, MinTTL: 5 * time.Second, MaxTTL: time.Hour})
	for name, holds := range map[string]time.Duration{"zero.example": 5 * time.Second, "odd.example": 5 * time.Second, "long.example": time.Hour} {
		for i, wait := range []time.Duration{0, holds - 1, 1} {
			c.move(wait)
			_, err := r.Lookup(t.Context(), name)
			require.NoError(t, err)
			assert.Equal(t, 1+i/2, s.count("A "+name), "%s %d", name, i)
		}
	}
}

func TestNoAddressIsRememberedAsTheZoneSays(t *testing.T) {
	s := serve(t, func(name string, _ dnsmessage.Type) said {
		switch name {
		case "gone.example":
			return said{code: dnsmessage.RCodeNameError, soa: 30}
		case "empty.example":
			return said{soa: 30}
		case "day.example":
			return said{code: dnsmessage.RCodeNameError, soa: 86400}
		}
		return said{code: dnsmessage.RCodeNameError}
	})
	r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true})
	for name, holds := range map[string]time.Duration{
		"gone.example": 30 * time.Second, "empty.example": 30 * time.Second, "day.example": 15 * time.Minute, "silent.example": time.Minute,
	} {
		for i, wait := range []time.Duration{0, holds - 1, 1} {
			c.move(wait)
			_, err := r.Lookup(t.Context(), name)
			var e *net.DNSError
			require.ErrorAs(t, err, &e)
			assert.True(t, e.IsNotFound, name)
			assert.Equal(t, 1+i/2, s.count("A "+name), "%s %d", name, i)
		}
	}
	assert.EqualValues(t, 4, r.Stats().Negative)
}

func TestLookupsOfOneNameShareAnAnswer(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(string, dnsmessage.Type) said {
		<-hold
		return said{addrs: []string{"192.0.2.1"}, ttl: 60}
	})
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, Timeout: time.Minute})
	gaveUp, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx := t.Context()
			if i == 0 {
				ctx = gaveUp
			}
			got, err := r.Lookup(ctx, "a.example")
			if i == 0 {
				assert.ErrorIs(t, err, context.Canceled)
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, addrs("192.0.2.1"), got)
		})
	}
	require.Eventually(t, func() bool { return r.counted.lookups.Load() == 50 && s.count("A a.example") == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	close(hold)
	wg.Wait()
	assert.Equal(t, 1, s.count("A a.example"))
}

func TestTheCacheIsBounded(t *testing.T) {
	s := serve(t, fixed(said{addrs: []string{"192.0.2.1"}, ttl: 60}))
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, MaxNames: 10})
	for i := range 30 {
		for _, name := range []string{"often.example", fmt.Sprintf("n%d.example", i)} {
			_, err := r.Lookup(t.Context(), name)
			require.NoError(t, err)
		}
	}
	assert.Equal(t, 10, r.Stats().Names)
	assert.Equal(t, 1, s.count("A often.example"), "the least recently used goes")
}

func TestPrefetch(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(name string, _ dnsmessage.Type) said {
		if strings.HasPrefix(name, "slow") {
			<-hold
		}
		return said{addrs: []string{"192.0.2.1"}, ttl: 100}
	})
	r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, MaxPrefetch: 1, Timeout: time.Minute})
	settled := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.under) == 0
	}
	ahead := func(name string) {
		r.Prefetch(name)
		require.Eventually(t, settled, 10*time.Second, time.Millisecond)
	}
	ahead("a.example")
	ahead("a.example")
	c.move(89 * time.Second)
	ahead("a.example")
	assert.Equal(t, 1, s.count("A a.example"), "known for a while")
	c.move(2 * time.Second)
	ahead("a.example")
	assert.Equal(t, 2, s.count("A a.example"), "about to expire")
	got, err := r.Lookup(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, addrs("192.0.2.1"), got)
	assert.EqualValues(t, 1, r.Stats().Hits)
	r.Prefetch("192.0.2.1")
	r.Prefetch("not a name")
	r.Prefetch("slow.example")
	r.Prefetch("left-out.example")
	close(hold)
	require.Eventually(t, settled, 10*time.Second, time.Millisecond)
	assert.Zero(t, s.count("A left-out.example"))
	assert.EqualValues(t, 3, r.Stats().Prefetched)
}
