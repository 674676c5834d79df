package frontier

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
		"http://a..example/":                 "a..example",
		"http://" + strings.Repeat("a", 255): strings.Repeat("a", 255),
	} {
		got, err := HostName(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
}

// slowHost is HostName by net/url, and the names that net/http contacts.
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
	if strings.Trim(h[strings.LastIndexByte(h, '.')+1:], "0123456789abcdefx") == "" { // perhaps an IPv4 address: as browsers read it
		if w, err := whatwg.Parse("http://" + h + "/"); err == nil {
			h = w.Hostname()
		}
	}
	return h, len(h) >= 1 && len(h) <= 255
}

// requireSameHost compares where both accept the URL: net/url is stricter beyond
// the authority, and HostName about blanks and ports.
func requireSameHost(t require.TestingT, raw string) {
	want, ok := slowHost(raw)
	got, err := HostName(raw)
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

// Hosts are found under their names however their hashes collide, and forgetting
// one hides no other.
func TestHostTableAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCore(coreConfig{levels: 3})
		known := map[string]uint32{}
		c.hash = func(name []byte) uint64 { return uint64(len(name)*7+int(name[len(name)-1])%3) << 51 } // few, and equal
		hash := func(name string) uint64 { return c.hash([]byte(name)) }
		draw := func() string {
			return strings.Repeat("h", 1+rapid.IntRange(0, 5).Draw(t, "len")) + fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "n"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"ensure": func(*rapid.T) {
				name := draw()
				id := c.ensure(hash(name), name)
				if was := known[name]; was != 0 {
					require.Equal(t, was, id)
				}
				known[name] = id
			},
			"forget": func(*rapid.T) {
				name := draw()
				if id := known[name]; id != 0 {
					c.forget(id)
					delete(known, name)
				}
			},
			"": func(*rapid.T) {
				require.Equal(t, len(known), c.hosts.len())
				for name, id := range known {
					require.Equal(t, id, c.lookup(hash(name), name))
					require.Equal(t, name, string(c.name(c.hosts.at(id))))
				}
				require.Zero(t, c.lookup(hash("none1"), "none1"))
			},
		})
	})
}
