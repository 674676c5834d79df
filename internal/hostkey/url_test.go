// This file tests which host a URL is owed to.

package hostkey

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/idna"
	"pgregory.net/rapid"
)

func TestHostNameOfOddURLs(t *testing.T) {
	for in, want := range map[string]string{
		"http://a.example/x":                         "a.example",
		"https://A.Example":                          "a.example",
		"http://a.example:8080?q":                    "a.example",
		"http://a.example.:80/":                      "a.example",
		"http://user:pa@ss@a.example/":               "a.example",
		"http://[2001:DB8:0::1]:80/":                 "2001:db8::1",
		"ftp://a.example/file":                       "a.example",
		"http://127.0.0.1:9/":                        "127.0.0.1",
		"http://a.example/100%&%zz#%":                "a.example", // bad escapes are the fetcher's business
		"http://bücher.example/":                     "xn--bcher-kva.example",
		"http://BU\u0308CHER\u3002example\uff0e:80/": "xn--bcher-kva.example", // decomposed, with CJK dots
		"http://xn--bcher-kva.example/":              "xn--bcher-kva.example",
		"http://ｅｘａｍｐｌｅ.org/1":                       "example.org",
		"http://中国/":                                 "xn--fiqs8s",
		"http://ａ_b.bücher:80/":                      "a_b.xn--bcher-kva",
		"http://１９２.0.2.1/":                          "192.0.2.1",
		"http://[::ffff:192.0.2.1]/":                 "192.0.2.1",
		"http://[::FFFF:c000:201]:80/":               "192.0.2.1",
		"http://[::192.0.2.1]/":                      "::c000:201", // mapped to no IPv4 address
		"http://2130706433/":                         "127.0.0.1",
		"http://0x7f.1/":                             "127.0.0.1",
		"http://0X7F.0.0.1:80/":                      "127.0.0.1",
		"http://0177.0.0.01":                         "127.0.0.1",
		"http://127.1./":                             "127.0.0.1",
		"http://１２７.１/":                              "127.0.0.1",
		"http://017700000001/":                       "127.0.0.1",
		"http://192.0.513/":                          "192.0.2.1",
		"http://0/":                                  "0.0.0.0",
		"http://0x/":                                 "0.0.0.0",
		"http://192.0.2.256/":                        "192.0.2.256", // no address, so a name
		"http://192.0.2.08/":                         "192.0.2.08",
		"http://4294967296/":                         "4294967296",
		"http://1.2.3.4.5/":                          "1.2.3.4.5",
		"http://a.1/":                                "a.1",
		"http://a.3com/":                             "a.3com",
		"http://0+0.0/":                              "0+0.0",
		"http://1.-1/":                               "1.-1",
		"http://1.0x_1/":                             "1.0x_1",
		"https://a.example?next=http://b.example":    "a.example",
		"http://a.example:/":                         "a.example",
	} {
		got, err := Of(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{
		"", "a.example/x", "/x", "//a.example/", "http:/a.example", "mailto:x@a.example", "http://", "http:///x", "http://./", "http://../", "http://a..example/", "http://A..example/", "http://a.example../", "http://.a.example/", "http://1..1/", "http://\u3002/", "http://\u00ad/",
		"http://\xff.example/", "http://a\uff0fb.example/", "http://a\uff1a80.example/", "http://" + strings.Repeat("é", 256) + "/",
		"http://:80/", "http://a.example:x/", "http://a.example:65536/", "http://a b.example/", "http://a.example/x y",
		"http://a.example/\n", "\x00http://a.example/", "http://a%2eexample/", "http://[::1", "http://[a.example]/", "http://[::1]x/",
		"http://a.example\\@b.example/", "1http://a.example/", "http://" + strings.Repeat("a", 256) + "/",
	} {
		got, err := Of(in)
		require.Error(t, err, "%q gave %q", in, got)
	}
}

func TestHostName(t *testing.T) {
	for raw, want := range map[string]string{
		"http://a.example":                   "a.example",
		"https://a.example/":                 "a.example",
		"https://A.Example/x":                "a.example",
		"HTTP://a.example/x":                 "a.example",
		"http://a.example./":                 "a.example",
		"http://a.example:8080/":             "a.example",
		"http://a.example:/":                 "a.example",
		"http://user:pass@a.example/":        "a.example",
		"http://a.example?q":                 "a.example",
		"http://a.example#f":                 "a.example",
		"http://10.0.0.1/":                   "10.0.0.1",
		"http://[2001:DB8::1]:80/":           "2001:db8::1",
		"http://b\u00fccher.example/":        "xn--bcher-kva.example",
		"http://xn--bcher-kva.example/%41":   "xn--bcher-kva.example",
		"ftp://a.example/x":                  "a.example",
		"http://under_score.example/":        "under_score.example",
		"http://-.example/":                  "-.example",
		"http://" + strings.Repeat("a", 255): strings.Repeat("a", 255),
	} {
		got, err := Of(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
}

// slowHost is Of by net/url, and the names that net/http contacts.
func slowHost(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || !u.IsAbs() {
		return "", false
	}
	h := u.Hostname()
	if !isASCII(h) {
		if h, err = idna.Lookup.ToASCII(h); err != nil {
			return "", false
		}
	}
	h = strings.TrimRight(strings.ToLower(h), ".")
	// It may be an IPv4 address, which is compared as browsers read it. The parser here takes signed numbers, which the URL standard does not.
	if strings.Trim(h[strings.LastIndexByte(h, '.')+1:], "0123456789abcdefx") == "" && !strings.ContainsAny(h, "+-") {
		if w, err := whatwg.Parse("http://" + h + "/"); err == nil {
			h = w.Hostname()
		}
	}
	return h, len(h) >= 1 && len(h) <= 255
}

// requireSameHost compares where both accept the URL: net/url is stricter beyond
// the authority, and Of about blanks and ports.
func requireSameHost(t require.TestingT, raw string) {
	want, ok := slowHost(raw)
	got, err := Of(raw)
	if ok && err == nil && !strings.Contains(want, ":") {
		require.Equal(t, want, got, "%q", raw)
	}
}

func TestHostNameAgreesWithNetURL(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"http://", "https://", "HTTP://", "ftp:", "//", "a.example", "A", "-", "..", ".", ":80", ":", "@", "/", "?q=1", "#f", "%41", "%", "%zz",
		"[::1]", "[", "]", " ", "\n", "\x7f", "\u00e9", "\u3002", "\uff21", "e\u0301", "xn--9ca", "\u05d0", "\\", "\"", "<", "|", "^", "`", "{", "a", "1", "_", "~", "*", "+", "&", ";", ",", "(", "x/y",
	})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		requireSameHost(t, s)
		requireSameHost(t, "http://a.example"+s)
		requireSameHost(t, "https://"+s)
	})
}

// IPv4 addresses have one key, however they are spelled: as the URL standard says.
func TestHostNameReadsIPv4AsBrowsersDo(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) string {
		n := rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64Range(0, 300), rapid.SampledFrom([]uint64{1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, 1<<32 - 1, 1 << 32, 1<<64 - 1}), rapid.Uint64Range(0, 1<<33)).Draw(t, "n")
		return fmt.Sprintf(rapid.SampledFrom([]string{"%d", "%d", "0%o", "0x%x", "0X%X", "00%o", "0%d"}).Draw(t, "as"), n)
	})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(number, number, number, rapid.SampledFrom([]string{"", "0x", "a", "1a", "09", "0xg"})), 1, 5).Draw(t, "parts")
		requireSameHost(t, "http://"+strings.Join(parts, ".")+"/")
	})
}

func FuzzHostName(f *testing.F) {
	for _, s := range []string{"http://a.example/x?y#z", "https://A:80", "http://[::1]/", "http://a.example/%zz", "//x", "mailto:a@b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		requireSameHost(t, s)
		requireSameHost(t, "http://"+s)
	})
}
