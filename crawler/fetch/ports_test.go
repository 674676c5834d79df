// These tests ask for ports of other protocols.

package fetch

import (
	"context"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPortsOfOtherProtocolsAreNotContacted(t *testing.T) {
	dialled := 0
	dial := func(context.Context, string, string) (net.Conn, error) {
		dialled++
		return nil, &net.OpError{Op: "dial", Err: net.UnknownNetworkError("none here")}
	}
	proxy, err := url.Parse("http://192.0.2.1:3128")
	require.NoError(t, err)
	for _, o := range []Options{{Dial: dial}, {Dial: dial, Proxy: proxy}} {
		f := newFetcher(t, o)
		for _, u := range []string{
			"http://a.example:25/", "https://a.example:465/", "http://192.0.2.1:6667/", "http://[2001:db8::1]:22/x", "HTTP://a.example:0025/",
			"http://u:p@a.example:10080/?q#f", "http://a.example:0/", "http://a.example:21/", "http://a.example:99999/",
		} {
			res, err := get(t, f, u)
			assert.Equal(t, Blocked, ClassOf(err), "%s: %v", u, err)
			assert.ErrorAs(t, err, new(*PortError), u)
			assert.Error(t, f.CheckPort(u), u)
			assert.False(t, res.Ended.IsZero())
		}
		assert.Zero(t, dialled)
		for _, u := range []string{"http://a.example/", "http://a.example:80/", "https://a.example:8443/", "http://a.example:6380/", "mailto:a@b", "http://"} {
			assert.NoError(t, f.CheckPort(u), u)
		}
	}
	_, err = newFetcher(t, Options{Dial: dial, AnyPort: true}).Fetch(t.Context(), Request{URL: "http://a.example:25/"})
	assert.Equal(t, Connect, ClassOf(err))
	assert.Equal(t, 1, dialled)

	m, err := NewModule("ftp", "21", Options{Dial: dial}, func(ctx context.Context, c *Contact) error {
		_, err := c.Dial(ctx)
		return err
	})
	require.NoError(t, err)
	for u, want := range map[string]Class{"ftp://a.example/": Connect, "ftp://a.example:21/": Connect, "ftp://a.example:25/": Blocked, "ftp://a.example:22/": Blocked} {
		_, err := m.Fetch(t.Context(), Request{URL: u})
		assert.Equal(t, want, ClassOf(err), u)
		assert.Equal(t, want == Blocked, m.CheckPort(u) != nil, u)
	}
	assert.Equal(t, 3, dialled)
	assert.Len(t, badPorts, 83)
}
