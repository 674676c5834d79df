package view

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A cursor names the place from which it was made, and no other text names one.
func TestCursors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host, seq := rapid.StringMatching(`[a-z]{1,9}\.example`).Draw(t, "host"), rapid.Uint64().Draw(t, "seq")
		c := Cursor(host, seq)
		gotHost, gotSeq, ok := ParseCursor(c)
		require.True(t, ok)
		require.Equal(t, host, gotHost)
		require.Equal(t, seq, gotSeq)
		b := []byte(c)
		b[rapid.IntRange(0, len(b)-2).Draw(t, "at")] ^= 1
		_, _, ok = ParseCursor(string(b))
		require.False(t, ok, "%s, from %s", b, c)
	})
	for _, s := range []string{"", "AAAA", "not one", Cursor("", 1)} {
		_, _, ok := ParseCursor(s)
		require.False(t, ok, s)
	}
}
