package idna

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// requireLookups requires the form that net/http contacts of a name that it accepts, and
// none of bytes that are no name.
func requireLookups(t require.TestingT, name string) {
	if !utf8.ValidString(name) {
		_, err := ToASCII(name)
		require.Error(t, err, "%q", name)
		return
	}
	want, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return
	}
	got, err := ToASCII(name)
	if errors.Is(err, errPunycode) && strings.Contains(strings.ToLower(norm.NFKC.String(name)), "xn--") {
		return // Lookup decodes it without a look at what is before the last hyphen
	}
	if errors.Is(err, errLongLabel) && len(want) > longestLabel {
		return // Lookup has no bound
	}
	require.NoError(t, err, "%q", name)
	require.Equal(t, want, got, "%q; go generate if Unicode changed", name)
}

// Each code point alone becomes what it becomes in net/http, and is refused where it
// is there for its own sake.
func TestEveryCodePoint(t *testing.T) {
	alone := idna.New(idna.MapForLookup(), idna.Transitional(false), idna.CheckJoiners(false))
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		name := "a" + string(r) + "a"
		want, err := alone.ToASCII(name)
		got, bad := ToASCII(name)
		switch {
		case err == nil && (bad != nil || want != got):
			t.Fatalf("%q (%U): got %q, %v; want %q", name, r, got, bad, want)
		case err != nil && bad == nil && r >= utf8.RuneSelf:
			t.Fatalf("%q (%U): got %q; want an error", name, r, got)
		}
		requireLookups(t, name)
		requireLookups(t, string(r)+".a")
	}
}

func TestKnownNames(t *testing.T) {
	for name, want := range map[string]string{
		"b\u00fccher.example":            "xn--bcher-kva.example",
		"B\u00dcCHER.example":            "xn--bcher-kva.example",
		"bu\u0308cher.example":           "xn--bcher-kva.example",
		"b\u00fccher\u3002example\uff0e": "xn--bcher-kva.example.",
		"xn--bcher-kva\uff61example":     "xn--bcher-kva.example",
		"\uff45\uff58\uff41\uff4d.org":   "exam.org",
		"\uff38\uff2d--bcher-kva":        "xm--bcher-kva",
		"stra\u00dfe.de":                 "xn--strae-oqa.de",
		"a\u00adb":                       "ab",
		"\uff11\uff19\uff12.0.2.\uff11":  "192.0.2.1",
		"\u5317\u4eac.\u4e2d\u56fd":      "xn--1lq90i.xn--fiqs8s",
		"a_b.b\u00fccher":                "a_b.xn--bcher-kva", // Lookup refuses it, browsers do not
		"":                               "",
		".":                              ".",
	} {
		got, err := ToASCII(name)
		require.NoError(t, err, "%q", name)
		require.Equal(t, want, got, "%q", name)
	}
	for _, name := range []string{"\xff\u00e9", "a\uff0fb", "a\u2025", "\ufffd", "\U0010ffff.a", "<\u0338", "xn--b\u00fccher-", strings.Repeat("\u00e9", 256)} {
		got, err := ToASCII(name)
		require.Error(t, err, "%q gave %q", name, got)
	}
}

// Names of many scripts, whole and cut to pieces, composed and decomposed.
var names = []string{
	"b\u00fccher", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0909\u0926\u093e\u0939\u0930\u0923", "\u0915\u094d\u200d\u0937", "\u0645\u062b\u0627\u0644", "\u0646\u0627\u0645\u0647\u200c\u0627\u06cc", "\u05d3\u05d5\u05d2\u05de\u05d4", "\ud55c\uad6d\uc5b4", "\uc2e4\ub840",
	"ti\u1ebfng-vi\u1ec7t", "\u4f8b\u3048", "\u30c6\u30b9\u30c8", "\u304c\u304e", "\u03c0\u03b1\u03c1\u03ac\u03b4\u03b5\u03b9\u03b3\u03bc\u03b1", "\u0438\u0441\u043f\u044b\u0442\u0430\u043d\u0438\u0435", "stra\u00dfe", "\u0130stanbul",
	"\u0bb5\u0bbf\u0bb4\u0bbf\u0baa\u0bcd\u0baa\u0bca", "\u0e15\u0e31\u0e27\u0e2d\u0e22\u0e48\u0e32\u0e07", "\u1ed6", "\u01d5", "q\u0307\u0323", "a\u0323\u0302", "\u1100\u1161\u11a8", "\uac00\u11a8",
	"\u212b", "\ufb03", "\u2126", "\uff76\uff9e", "\u0344", "\u1fb7", "a", "1", "-", ".", "\u3002", "xn--bcher-kva", "\u0f71\u0f72\u0f74", "\U00011131\U00011127", "\u09c7\u09be",
}

func TestNamesOfManyScripts(t *testing.T) {
	for _, a := range names {
		for _, b := range names {
			for _, name := range []string{a + b, norm.NFD.String(a + b), strings.ToUpper(a) + b, a + "." + norm.NFKD.String(b)} {
				requireLookups(t, name)
			}
		}
	}
}

// iotaBelow is the one mark that UTS 46 maps to a letter: marks behind it do not change
// places with it any more. Names with it have forms that depend on how they are spelled,
// in net/http as here.
const iotaBelow = '\u0345'

func TestNamesAtRandom(t *testing.T) {
	table := load()
	var marks []rune
	for r := range table.classes {
		marks = append(marks, r)
	}
	var parts []rune // of composites
	for p := range table.pairs {
		parts = append(parts, p[0], p[1])
	}
	slices.Sort(marks)
	slices.Sort(parts)
	piece := rapid.OneOf(
		rapid.SampledFrom(names),
		rapid.Map(rapid.SampledFrom(names), norm.NFD.String),
		rapid.Map(rapid.SampledFrom(marks), func(r rune) string { return string(r) }),
		rapid.Map(rapid.SampledFrom(parts), func(r rune) string { return string(r) }),
		rapid.Map(rapid.Rune(), func(r rune) string { return string(r) }),
		rapid.Map(rapid.RuneFrom(nil, unicode.Hangul), func(r rune) string { return string(r) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pieces"), "")
		requireLookups(t, name)
		requireLookups(t, "a"+name+"a") // so that more of them are accepted
		// All spellings have one form, and the form is its own.
		form, err := ToASCII(name)
		if err != nil || strings.ContainsRune(norm.NFD.String(name), iotaBelow) {
			return
		}
		for _, spelling := range []string{norm.NFC.String(name), norm.NFD.String(name), form} {
			got, err := ToASCII(spelling)
			require.NoError(t, err)
			require.Equal(t, form, got, "%q and %q", name, spelling)
		}
	})
}

func FuzzToASCII(f *testing.F) {
	for _, name := range names {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 4096 {
			return // Lookup takes the square of it
		}
		if strings.Contains(strings.ToLower(norm.NFKC.String(name)), "xn--") { // what is punycode already is taken as it is, whatever it stands for
			once, err := ToASCII(name)
			if err == nil {
				twice, err := ToASCII(once)
				require.NoError(t, err)
				require.Equal(t, once, twice)
			}
			return
		}
		requireLookups(t, name)
	})
}

// What is embedded is whole, and a table that is not is no silent one.
func TestReadTable(t *testing.T) {
	onDisk, err := os.ReadFile("table.gz")
	require.NoError(t, err)
	require.True(t, bytes.Equal(onDisk, packed))
	_, err = read(packed[:len(packed)/2])
	require.Error(t, err)
	_, err = read(nil)
	require.Error(t, err)
}
