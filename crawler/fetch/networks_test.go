// These tests try to make a Fetcher contact what it must not.

package fetch

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNetworks(t *testing.T) {
	for addr, kind := range map[string]string{
		"8.8.8.8": "", "100.63.255.255": "", "100.128.0.0": "", "172.32.0.1": "", "198.20.0.1": "", "223.255.255.255": "",
		"2600::1": "", "2a00:1450:4001::1": "", "2001:200::1": "", "2003::1": "",
		"0.0.0.0": "this network", "0.1.2.3": "this network", "127.0.0.1": "loopback", "127.255.255.255": "loopback",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private",
		"169.254.169.254": "link-local", "100.64.0.1": "shared address space", "100.127.255.255": "shared address space",
		"192.0.0.170": "protocol assignments", "192.0.2.1": "documentation", "198.51.100.7": "documentation", "203.0.113.7": "documentation",
		"192.88.99.1": "6to4 relay", "198.19.255.255": "benchmarking", "224.0.0.1": "multicast", "239.1.1.1": "multicast",
		"168.63.129.16": "a cloud's own", "161.26.0.10": "a cloud's own", "192.80.8.124": "a cloud's own", "168.63.129.17": "", "192.80.8.125": "",
		"240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"::": "unspecified", "::1": "loopback", "::7f00:1": "IPv4-compatible", "::ffff:127.0.0.1": "loopback",
		"::ffff:169.254.169.254": "link-local", "::ffff:8.8.8.8": "", "64:ff9b::7f00:1": "NAT64", "64:ff9b::808:808": "NAT64",
		"64:ff9b:1::a00:1": "local NAT64", "2002:7f00:1::": "6to4", "2002:808:808::1": "6to4", "2001::1": "Teredo",
		"2001:20::1": "protocol assignments", "2001:db8::1": "documentation", "3fff::1": "documentation", "fc00::1": "private",
		"fd00:ec2::254": "private", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "fec0::1": "site-local", "ff02::1": "multicast",
		"100::1": "not global", "5f00::1": "not global", "::ffff:0:7f00:1": "not global",
	} {
		err := new(Networks).Check(netip.MustParseAddr(addr))
		if kind == "" {
			assert.NoError(t, err, addr)
			continue
		}
		var e *AddressError
		if assert.ErrorAs(t, err, &e, addr) {
			assert.Equal(t, kind, e.Kind, addr)
		}
	}
	assert.Error(t, new(Networks).Check(netip.Addr{}))
}

func prefixes(names ...string) (out []netip.Prefix) {
	for _, n := range names {
		out = append(out, netip.MustParsePrefix(n))
	}
	return out
}

func TestNetworksExceptions(t *testing.T) {
	check := func(n Networks, addr string) error { return n.Check(netip.MustParseAddr(addr)) }
	home := Networks{Allow: prefixes("10.0.0.0/8"), Deny: prefixes("10.6.0.0/16", "8.8.8.0/24", "2600::/16")}
	assert.NoError(t, check(home, "10.1.2.3"))
	assert.NoError(t, check(home, "::ffff:10.1.2.3"))
	assert.Error(t, check(home, "10.6.0.1"), "denied within allowed")
	assert.Error(t, check(home, "8.8.8.8"))
	assert.Error(t, check(home, "2600::1"))
	assert.Error(t, check(home, "127.0.0.1"))
	assert.Error(t, check(home, "64:ff9b::10.1.2.3"), "NAT64 is not allowed as such")
	nat := Networks{Allow: prefixes("64:ff9b::/96"), Deny: prefixes("8.8.4.0/24")}
	assert.NoError(t, check(nat, "64:ff9b::8.8.8.8"))
	assert.Error(t, check(nat, "64:ff9b::8.8.4.4"))
	assert.Error(t, check(nat, "64:ff9b::127.0.0.1"), "what is inside counts, too")
	assert.Error(t, check(nat, "64:ff9b::169.254.169.254"))
}

// secret is a server on loopback that no hostile host may make us ask.
func secret(t *testing.T) (port string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	addr := web(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return port, asked
}

var nowhere = Networks{Deny: prefixes("198.18.0.0/15")} // as strict as the zero value

func TestFetchContactsNoInternalAddress(t *testing.T) {
	port, asked := secret(t)
	f := newFetcher(t, Options{Networks: nowhere, Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == "many.example" {
			return addrs("10.0.0.1", "::1", "169.254.169.254", "127.0.0.1"), nil
		}
		return addrs("127.0.0.1"), nil
	}})
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "localhost", "inner.example", "many.example", "0.0.0.0", "[64:ff9b::7f00:1]"} {
		u := "http://" + host + ":" + port + "/"
		res, err := get(t, f, u)
		assert.Equal(t, Blocked, ClassOf(err), "%s: %v", u, err)
		assert.Zero(t, res.Status)
		_, err = f.Addresses(t.Context(), u)
		assert.Equal(t, Blocked, ClassOf(err), u)
		_, err = f.Fetch(t.Context(), Request{URL: "http://public.example:" + port + "/", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
		assert.Equal(t, Blocked, ClassOf(err), "an address that was looked up earlier is judged, too")
	}
	assert.Zero(t, asked.Load())
}

// A name that resolves to a public address when it is judged, and to an internal
// one when it is connected to, is no way in: what is judged is what is connected to.
func TestFetchIsNotRebound(t *testing.T) {
	port, asked := secret(t)
	var n atomic.Int64
	dialled := make(chan string, 10)
	f := newFetcher(t, Options{
		Networks: nowhere,
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			if n.Add(1)%2 == 1 {
				return addrs("8.8.8.8"), nil
			}
			return addrs("127.0.0.1"), nil
		},
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled <- addr
			return nil, &net.OpError{Op: "dial", Err: net.UnknownNetworkError("none here")}
		},
	})
	u := "http://rebind.example:" + port + "/"
	list, err := f.Addresses(t.Context(), u)
	require.NoError(t, err)
	_, err = f.Fetch(t.Context(), Request{URL: u, Addrs: list})
	assert.Equal(t, Connect, ClassOf(err))
	assert.Equal(t, "8.8.8.8:"+port, <-dialled, "the address that was judged, not what the name says now")
	_, err = get(t, f, u)
	assert.Equal(t, Blocked, ClassOf(err))
	assert.Empty(t, dialled)
	assert.Zero(t, asked.Load())
}

// The same holds for a dialler of the user's own, which is judged by what it did.
func TestFetchJudgesWhatAnotherDialConnectedTo(t *testing.T) {
	port, asked := secret(t)
	f := newFetcher(t, Options{Networks: nowhere, Dial: new(net.Dialer).DialContext})
	_, err := get(t, f, "http://localhost:"+port+"/")
	assert.Equal(t, Blocked, ClassOf(err), "%v", err)
	assert.Zero(t, asked.Load())
}

func TestOperatorsChoicesNeedNoException(t *testing.T) {
	port, asked := secret(t)
	f := newFetcher(t, Options{Networks: nowhere, Resolve: map[string]string{"a.example": "127.0.0.1:" + port, "alias.example": "localhost:" + port}})
	_, err := get(t, f, "http://a.example/")
	assert.NoError(t, err)
	got, err := f.Addresses(t.Context(), "http://a.example/")
	assert.NoError(t, err)
	assert.Equal(t, addrs("127.0.0.1"), got)
	_, err = get(t, f, "http://alias.example/")
	assert.Equal(t, Blocked, ClassOf(err), "a name is not an address")
	_, err = get(t, f, "http://127.0.0.1:"+port+"/")
	assert.Equal(t, Blocked, ClassOf(err), "for that host only")
	assert.EqualValues(t, 1, asked.Load())

	f = newFetcher(t, Options{Networks: nowhere, Proxy: &url.URL{Scheme: "http", Host: "127.0.0.1:" + port}})
	_, err = get(t, f, "http://a.example/")
	assert.NoError(t, err)
	_, err = get(t, f, "http://169.254.169.254/latest/meta-data/")
	assert.Equal(t, Blocked, ClassOf(err), "nor through a proxy")
	assert.EqualValues(t, 2, asked.Load())
}
