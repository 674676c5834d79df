package pctenc

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNormalize(t *testing.T) {
	f := NewForm("/*")
	for in, want := range map[string]string{
		"":            "",
		"a-b._~9/*":   "a-b._~9/*",
		"%61%7e":      "a~",
		"%2f%2F/%2a*": "%2F%2F/%2A*",
		"\xe9 \"$":    "%E9%20%22%24",
		"%":           "%25",
		"%4":          "%254",
		"%zz":         "%25zz",
		"%%34%31":     "%2541",
	} {
		assert.Equal(t, want, f.Normalize(in), in)
	}
	assert.True(t, f.Encodes(' '))
	assert.True(t, f.Encodes('%'))
	assert.False(t, f.Encodes('a'))
	assert.False(t, f.Encodes('/'))
}

// For any input, the normal form is ASCII, is its own normal form, and has the same meaning, except
// for percent signs that began no escape.
func TestNormalizeTwice(t *testing.T) {
	f := NewForm("/?")
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.StringMatching(`(%[0-9a-fA-F]{2}|%|[a-z/? $]){0,20}`)).Draw(t, "in")
		once := f.Normalize(in)
		require.Equal(t, once, f.Normalize(once))
		means, err := url.PathUnescape(once)
		require.NoError(t, err)
		if was, err := url.PathUnescape(in); err == nil {
			require.Equal(t, was, means)
		}
	})
}
