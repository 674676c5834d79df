// These tests look addresses up.

package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func addrs(names ...string) (out []netip.Addr) {
	for _, n := range names {
		out = append(out, netip.MustParseAddr(n))
	}
	return out
}

func TestAddresses(t *testing.T) {
	o := Options{
		Resolve: map[string]string{"fixed.example": "192.0.2.7:81", "alias.example": "many.example", "lost.example": "nowhere.example"},
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			switch host {
			case "many.example":
				return addrs("2001:db8::1", "192.0.2.9", "::ffff:192.0.2.1", "192.0.2.9"), nil
			case "empty.example":
				return nil, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	}
	f := newFetcher(t, o)
	for url, want := range map[string][]netip.Addr{
		"http://many.example/":   addrs("192.0.2.1", "2001:db8::1", "192.0.2.9"),
		"http://alias.example/":  addrs("192.0.2.1", "2001:db8::1", "192.0.2.9"),
		"http://fixed.example/":  addrs("192.0.2.7"),
		"http://127.0.0.1:8080/": addrs("127.0.0.1"),
		"http://[::1]/":          addrs("::1"),
	} {
		got, err := f.Addresses(t.Context(), url)
		require.NoError(t, err, url)
		assert.Equal(t, want, got, url)
	}
	for url, want := range map[string]Class{
		"http://unknown.example/": DNS, "http://empty.example/": DNS, "http://lost.example/": DNS, "ftp://a.example/": BadURL, "http:///": BadURL,
	} {
		_, err := f.Addresses(t.Context(), url)
		assert.Equal(t, want, ClassOf(err), url)
		assert.True(t, errors.As(err, new(*Error)), url)
	}
}

// Nobody knows what a proxy, or a dialler of the user's own, connects to.
func TestAddressesThatAreNotKnown(t *testing.T) {
	proxy, err := url.Parse("http://127.0.0.1:1")
	require.NoError(t, err)
	for _, o := range []Options{{Proxy: proxy}, {Dial: new(net.Dialer).DialContext}} {
		got, err := newFetcher(t, o).Addresses(t.Context(), "http://a.example/")
		assert.NoError(t, err)
		assert.Empty(t, got)
	}
}

func TestRequestGoesToItsAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host)) }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	f := newFetcher(t, Options{Resolve: map[string]string{"a.example": "192.0.2.1:" + strconv.Itoa(port)}})
	res, err := f.Fetch(t.Context(), Request{URL: "http://a.example/", Addrs: addrs("127.0.0.1")})
	require.NoError(t, err)
	assert.Equal(t, "a.example", body(t, res))
}
