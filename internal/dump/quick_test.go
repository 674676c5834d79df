// This file compares the quick reading of lines with the JSON decoder.

package dump

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What quick reads is what the decoder reads; lines as Export writes them it does
// read.
func TestQuickLines(t *testing.T) {
	read := func(t require.TestingT, text []byte) bool {
		var q, want line
		if !q.quick(text) {
			require.Equal(t, line{}, q)
			return false
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&want), "%s", text)
		require.EqualValues(t, len(text), d.InputOffset())
		require.Equal(t, want, q)
		return true
	}
	rapid.Check(t, func(t *rapid.T) {
		var l lineWriter
		line := l.url(&URL{
			URL: "http://x.example/" + rapid.StringMatching(`[a-zü?&="\\]{0,5}`).Draw(t, "path"), Depth: rapid.IntRange(0, 1<<30).Draw(t, "depth"),
			Fails: rapid.IntRange(0, 12).Draw(t, "fails"), Weight: rapid.SampledFrom([]float64{0, 1.5}).Draw(t, "weight"),
			Crawl: rapid.Uint32().Draw(t, "crawl"), Priority: rapid.IntRange(1, 64).Draw(t, "priority"), Due: rapid.SampledFrom([]int64{0, 5, instant.KeptMillis}).Draw(t, "due"),
		})
		read(t, bytes.TrimSpace(line))
		text := bytes.Clone(bytes.TrimSpace(line))
		for range rapid.IntRange(1, 4).Draw(t, "changes") { // and what has gone wrong
			i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text[i] = rapid.SampledFrom([]byte(`{}",:019 a\`)).Draw(t, "to")
		}
		if utf8.Valid(text) { // else the Reader refuses it before
			read(t, text)
		}
	})
	require.True(t, read(t, []byte(`{"url":"http://x.example/","crawl":7,"priority":3,"depth":2}`)))
	for _, text := range []string{``, `{"url":"x"`, `{"url":"x",}`, `{"url":"x"}}`, `{"url":"x","depth":01}`, `{"url":"x","depth":1234567890}`, `{"url":"x","depth":}`, `{"url":"x","depth":1.5}`, `{"url":"x","meta":5}`} {
		require.False(t, read(t, []byte(text)), text)
	}
}
