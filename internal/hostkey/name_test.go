package hostkey

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDomain(t *testing.T) {
	for name, want := range map[string]string{
		"example": "example", "example.org": "example.org", "a.b.example.org": "example.org", "www.example.co.uk": "example.co.uk",
		"example.co.uk": "example.co.uk", "co.uk": "co.uk", "www.ab.com": "ab.com", "a.shop.de": "shop.de", "192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1",
	} {
		assert.Equal(t, want, string(Domain([]byte(name))), name)
	}
}

func TestReversed(t *testing.T) {
	for name, want := range map[string]string{
		"www.example.org": "org.example.www", "localhost": "localhost", "": "", "a..b": "b..a", ".": ".",
		"192.0.2.7": "192.0.2.7", "2001:db8::1.2.3.4": "2001:db8::1.2.3.4", "a.1": "1.a", "host.example:8080": "example:8080.host",
	} {
		require.Equal(t, want, Reversed(name), name)
		require.Equal(t, want, string(AppendReversed(nil, []byte(name))), name)
	}
}

// A name's key is that of a URL with the name as its host; a key is its own spelling.
func TestSpelledIsTheHostOfAURL(t *testing.T) {
	for in, want := range map[string]string{
		"A.Example": "a.example", "a.example.": "a.example", "b\u00fccher.example": "xn--bcher-kva.example",
		"2001:DB8:0::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "0x7f.1": "127.0.0.1", "\xff": "\xff",
	} {
		got, err := Spelled(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
		again, err := Spelled(got)
		require.NoError(t, err, in)
		require.Equal(t, got, again, in)
	}
	for _, in := range []string{"", "http://a.example", "a.example/x", "a@b.example", "a.example:80", "a b.example"} {
		_, err := Spelled(in)
		require.Error(t, err, in)
	}
}

func TestWhatMayBeNoAddressIsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[0-9a-f:.]{1,20}`).Draw(t, "key")
		if _, err := netip.ParseAddr(s); err == nil {
			require.True(t, MayBeAddress([]byte(s)), s)
		}
	})
}
