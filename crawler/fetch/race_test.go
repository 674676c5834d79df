// These tests connect to hosts with several addresses, in virtual time.

package fetch

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// places are addresses that answer connections after a while, with an error, or not
// at all.
type places struct {
	t  *testing.T
	at map[string]place

	mu     sync.Mutex
	dialed []string  // guarded by mu
	sent   []string  // guarded by mu; where a request came
	open   int       // guarded by mu
	last   time.Time // guarded by mu; of dialing
}

type place struct {
	after  time.Duration
	err    error
	silent bool
}

// fakeTCP is a connection to an address that needs no network.
type fakeTCP struct {
	net.Conn
	to   *net.TCPAddr
	once sync.Once
	done func()
}

func (c *fakeTCP) RemoteAddr() net.Addr { return c.to }

func (c *fakeTCP) Close() error {
	c.once.Do(c.done)
	return c.Conn.Close()
}

func (p *places) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	to := netip.MustParseAddrPort(addr)
	host := to.Addr().String()
	p.mu.Lock()
	p.dialed, p.last = append(p.dialed, host), time.Now()
	p.mu.Unlock()
	x, ok := p.at[host]
	if !ok {
		p.t.Errorf("%s was dialled", addr)
	}
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	wait := time.NewTimer(x.after)
	defer wait.Stop()
	if x.silent {
		wait.Reset(time.Hour)
	}
	select {
	case <-wait.C:
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	if x.err != nil {
		return fail(x.err)
	}
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		if _, err := http.ReadRequest(bufio.NewReader(there)); err == nil {
			p.mu.Lock()
			p.sent = append(p.sent, host)
			p.mu.Unlock()
			_, _ = there.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	return &fakeTCP{Conn: here, to: net.TCPAddrFromAddrPort(to), done: func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
	}}, nil
}

// fetcher gets pages of hosts that have all places' addresses.
func (p *places) fetcher(list []netip.Addr) *Fetcher {
	return newFetcher(p.t, Options{Dial: p.dial, NoKeepAlive: true, Networks: Networks{Deny: prefixes("10.0.0.0/8")},
		Lookup: func(context.Context, string) ([]netip.Addr, error) { return list, nil }})
}

func TestAllAddressesAreTriedWithinAnAttempt(t *testing.T) {
	refused, silent := place{err: syscall.ECONNREFUSED}, place{silent: true}
	many := addrs("8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4")
	for name, x := range map[string]struct {
		at     map[string]place
		took   time.Duration
		asked  []netip.Addr // by Contact
		failed []netip.Addr
	}{
		"the first answers":      {map[string]place{"8.8.8.1": {after: 200 * time.Millisecond}}, 200 * time.Millisecond, nil, nil},
		"three refuse":           {map[string]place{"8.8.8.1": refused, "8.8.8.2": refused, "8.8.8.3": refused, "8.8.8.4": {}}, 0, many[1:], many[:3]},
		"three are silent":       {map[string]place{"8.8.8.1": silent, "8.8.8.2": silent, "8.8.8.3": silent, "8.8.8.4": {}}, 750 * time.Millisecond, many[3:], nil},
		"the first is far away":  {map[string]place{"8.8.8.1": {after: 400 * time.Millisecond}, "8.8.8.2": silent}, 400 * time.Millisecond, nil, nil},
		"the second is far away": {map[string]place{"8.8.8.1": refused, "8.8.8.2": {after: 300 * time.Millisecond}, "8.8.8.3": silent}, 300 * time.Millisecond, many[1:2], many[:1]},
		"both come at last":      {map[string]place{"8.8.8.1": {after: 600 * time.Millisecond}, "8.8.8.2": {after: 300 * time.Millisecond}, "8.8.8.3": silent}, 550 * time.Millisecond, many[1:2], nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &places{t: t, at: x.at}
				var asked []netip.Addr
				began := time.Now()
				res, err := p.fetcher(many).Fetch(t.Context(), Request{URL: "http://a.example/", Addrs: many, Contact: func(a netip.Addr) error {
					asked = append(asked, a)
					return nil
				}})
				require.NoError(t, err)
				assert.Equal(t, "ok", body(t, res))
				assert.Equal(t, x.took, time.Since(began))
				assert.Equal(t, x.asked, asked, "addresses that Contact was asked about")
				assert.Equal(t, x.failed, res.Failed)
				assert.Equal(t, []string{res.Remote.Addr().String()}, p.sent, "one request")
				assert.Zero(t, p.open, "nothing is open when Fetch returns")
			})
		})
	}
}

func TestAllAddressesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &places{t: t, at: map[string]place{"8.8.8.1": {silent: true}, "8.8.8.2": {err: syscall.ECONNREFUSED}}}
		list := addrs("8.8.8.1", "8.8.8.2")
		began := time.Now()
		res, err := p.fetcher(list).Fetch(t.Context(), Request{URL: "http://a.example/"})
		require.Error(t, err)
		assert.Equal(t, 10*time.Second, time.Since(began), "DialTimeout bounds all")
		assert.Equal(t, list[1:], res.Failed)
		assert.Equal(t, []string{"8.8.8.1", "8.8.8.2"}, p.dialed)
		assert.Zero(t, p.open)
	})
}

// Contact says no to another address: not a byte is sent.
func TestAnAddressThatMayNotBeContactedNow(t *testing.T) {
	busy := errors.New("busy")
	for name, first := range map[string]place{"refused": {err: syscall.ECONNREFUSED}, "silent": {silent: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &places{t: t, at: map[string]place{"8.8.8.1": first, "8.8.8.2": {}}}
				list := addrs("8.8.8.1", "8.8.8.2")
				res, err := p.fetcher(list).Fetch(t.Context(), Request{URL: "http://a.example/", Addrs: list, Contact: func(netip.Addr) error { return busy }})
				require.ErrorIs(t, err, busy)
				assert.Equal(t, Other, ClassOf(err))
				assert.Empty(t, p.sent)
				assert.Zero(t, p.open)
				if name == "refused" {
					assert.Equal(t, []string{"8.8.8.1"}, p.dialed, "it was asked before the second was dialled")
					assert.Equal(t, list[:1], res.Failed)
				} else {
					assert.Equal(t, list[1], res.Remote.Addr())
				}
			})
		})
	}
}

// Each address is judged, not the first alone.
func TestNoAddressIsTriedThatMayNotBeContacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &places{t: t, at: map[string]place{"8.8.8.1": {err: syscall.ECONNREFUSED}, "8.8.8.2": {}}}
		list := addrs("8.8.8.1", "10.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "8.8.8.2")
		for _, r := range []Request{{URL: "http://a.example/"}, {URL: "http://a.example/", Addrs: list}} {
			res, err := p.fetcher(list).Fetch(t.Context(), r)
			require.NoError(t, err)
			assert.Equal(t, "ok", body(t, res))
		}
		assert.Equal(t, []string{"8.8.8.1", "8.8.8.2", "8.8.8.1", "8.8.8.2"}, p.dialed)
	})
}

// A machine with one family of addresses reaches hosts that have more of the other,
// and asks for these first from then on.
func TestMachineWithOneFamilyOfAddresses(t *testing.T) {
	for name, x := range map[string]struct{ reached, order []string }{
		"IPv4 alone": {[]string{"8.8.8.1"}, []string{"8.8.8.1", "2600::1", "8.8.8.2", "2600::2", "8.8.8.3"}},
		"IPv6 alone": {[]string{"2600::1"}, []string{"2600::1", "8.8.8.1", "2600::2", "8.8.8.2", "8.8.8.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list := addrs("2600::2", "2600::1", "8.8.8.3", "8.8.8.2", "8.8.8.1")
				p := &places{t: t, at: map[string]place{}}
				for _, a := range list {
					if a.Is4() != (name == "IPv4 alone") {
						p.at[a.String()] = place{err: syscall.ENETUNREACH}
					} else {
						p.at[a.String()] = place{}
					}
				}
				f := p.fetcher(list)
				before := time.Now()
				res, err := f.Fetch(t.Context(), Request{URL: "http://a.example/"})
				require.NoError(t, err)
				assert.Equal(t, "ok", body(t, res))
				assert.Equal(t, x.reached, p.sent)
				assert.Equal(t, before, time.Now(), "without a wait")
				order, err := f.Addresses(t.Context(), "http://a.example/")
				require.NoError(t, err)
				assert.Equal(t, addrs(x.order...), order)
				time.Sleep(routeMemory)
				order, err = f.Addresses(t.Context(), "http://a.example/")
				require.NoError(t, err)
				assert.Equal(t, addrs("8.8.8.1", "2600::1", "8.8.8.2", "2600::2", "8.8.8.3"), order, "the route may be back")
			})
		})
	}
}

// A host with a thousand addresses does not make the crawler knock at all of them.
func TestSoManyAddressesAreTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &places{t: t, at: map[string]place{}}
		var list []netip.Addr
		for i := range 200 {
			a := netip.AddrFrom4([4]byte{8, 8, 8, byte(i)})
			list, p.at[a.String()] = append(list, a), place{err: syscall.ECONNREFUSED}
		}
		_, err := p.fetcher(list).Fetch(t.Context(), Request{URL: "http://a.example/"})
		assert.Equal(t, Connect, ClassOf(err))
		assert.Len(t, p.dialed, maxTried)
	})
}
