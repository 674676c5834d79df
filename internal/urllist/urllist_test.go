package urllist

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// wideOf is text in UTF-16.
func wideOf(text string, little, marked bool) string {
	if marked {
		text = mark + text
	}
	var out strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		if little {
			out.Write([]byte{byte(u), byte(u >> 8)})
		} else {
			out.Write([]byte{byte(u >> 8), byte(u)})
		}
	}
	return out.String()
}

// A list is the same list in each encoding and with each line end, however its bytes arrive.
func TestListsInEachEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringMatching(`h([a-zé\x{1f600}/]{0,5}\n){0,9}[a-z]{0,3}`).Draw(t, "text")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
		text := strings.ReplaceAll(want, "\n", end)
		coded := rapid.SampledFrom([]string{
			text, mark + text, wideOf(text, true, true), wideOf(text, false, true), wideOf(text, true, false), wideOf(text, false, false),
		}).Draw(t, "coded")
		for how, r := range map[string]io.Reader{
			"at once": strings.NewReader(coded), "by bytes": iotest.OneByteReader(strings.NewReader(coded)), "with the end": iotest.DataErrReader(strings.NewReader(coded)),
		} {
			got, err := io.ReadAll(iotest.OneByteReader(NewReader(r)))
			require.NoError(t, err, how)
			require.Equal(t, want, string(got), how)
			if r, ok := r.(*strings.Reader); ok {
				_, _ = r.Seek(0, io.SeekStart)
				got, err = io.ReadAll(NewReader(r))
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
		}
	})
}

func TestEndsAndErrors(t *testing.T) {
	for text, want := range map[string]string{"": "", "h": "h", mark: "", "\xef": "\xef", "\xefx": "\xefx", "\xff\xfe": "", "caf\xe9\n": "caf\xe9\n", "\r": "\n"} {
		got, err := io.ReadAll(NewReader(strings.NewReader(text)))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "%q", text)
	}
	_, err := io.ReadAll(NewReader(strings.NewReader("\xff\xfeh\x00t")))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	got, err := io.ReadAll(NewReader(strings.NewReader("\xff\xfeh\x00\x3d\xd8")))
	require.NoError(t, err)
	assert.Equal(t, "h\ufffd", string(got), "half of a pair")
	_, err = io.ReadAll(NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("http://a.example/")))))
	assert.ErrorIs(t, err, iotest.ErrTimeout)
}

func TestURLOfALine(t *testing.T) {
	for line, want := range map[string]string{
		"http://a.example/":             "http://a.example/",
		" \thttp://a.example/ \r":       "http://a.example/",
		"\u00a0http://a.example/\u00a0": "http://a.example/",
		mark + "http://a.example/":      "http://a.example/",
		"http://a.example/x # good one": "http://a.example/x",
		"http://a.example/x\t#good one": "http://a.example/x",
		"http://a.example/x#part":       "http://a.example/x#part",
		"# http://a.example/":           "",
		"  #":                           "",
		"":                              "",
		`"http://a.example/"`:           "http://a.example/",
		`'http://a.example/' # it`:      "http://a.example/",
		"<http://a.example/>":           "http://a.example/",
		`"`:                             `"`,
		"http://a b/":                   "http://a b/",
	} {
		url, err := URL([]byte(line))
		assert.NoError(t, err)
		assert.Equal(t, want, string(url), "%q", line)
	}
	_, err := URL([]byte("http://a.example/caf\xe9"))
	assert.ErrorIs(t, err, errUTF8)
}

func TestLines(t *testing.T) {
	long := "http://a.example/" + strings.Repeat("x", 200_000)
	text := mark + "http://a.example/1 # one\r\n\r\n# none\r\n" + long + "\r\n\xe9\r\n <http://a.example/2>"
	var got []Line
	for l, err := range Lines(strings.NewReader(text), 100) {
		require.NoError(t, err)
		got = append(got, l)
	}
	require.Len(t, got, 4)
	assert.Equal(t, Line{1, "http://a.example/1", nil}, got[0])
	assert.Equal(t, 4, got[1].Number)
	assert.ErrorContains(t, got[1].Err, "longer than 100 bytes")
	assert.Equal(t, Line{5, "", errUTF8}, got[2])
	assert.Equal(t, Line{6, "http://a.example/2", nil}, got[3])
	for _, most := range []int{199_999 + 18, 200_000 + 17} {
		for l := range Lines(strings.NewReader(long+"\n"), most) {
			assert.NoError(t, l.Err)
			assert.Len(t, l.URL, len(long))
		}
	}
	n := 0
	for l, err := range Lines(io.MultiReader(strings.NewReader("http://a.example/1\nhttp://a.exa"), iotest.ErrReader(iotest.ErrTimeout)), 100) {
		if n++; n == 2 {
			assert.ErrorIs(t, err, iotest.ErrTimeout)
			assert.Equal(t, Line{Number: 2}, l)
		}
	}
	assert.Equal(t, 2, n)
	for range Lines(strings.NewReader("a\nb\n"), 9) {
		break
	}
}
