// This file tests which host a URL is owed to.

package frontier_test

import (
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
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
		"http://1..1/":                               "1..1",
		"http://a.3com/":                             "a.3com",
		"http://1.0x_1/":                             "1.0x_1",
		"http://a.example../":                        "a.example",
		"https://a.example?next=http://b.example":    "a.example",
		"http://a.example:/":                         "a.example",
	} {
		got, err := frontier.HostName(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{
		"", "a.example/x", "/x", "//a.example/", "http:/a.example", "mailto:x@a.example", "http://", "http:///x", "http://./", "http://../", "http://\u3002/", "http://\u00ad/",
		"http://\xff.example/", "http://a\uff0fb.example/", "http://a\uff1a80.example/", "http://" + strings.Repeat("é", 256) + "/",
		"http://:80/", "http://a.example:x/", "http://a.example:65536/", "http://a b.example/", "http://a.example/x y",
		"http://a.example/\n", "\x00http://a.example/", "http://a%2eexample/", "http://[::1", "http://[a.example]/", "http://[::1]x/",
		"http://a.example\\@b.example/", "1http://a.example/", "http://" + strings.Repeat("a", 256) + "/",
	} {
		got, err := frontier.HostName(in)
		require.Error(t, err, "%q gave %q", in, got)
	}
}
