package urlnorm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// References have a meaning whatever their scheme; the suites have many more.
func TestReference(t *testing.T) {
	for ref, want := range map[string]string{
		"mailto:me@a.example?subject=x": "mailto:me@a.example?subject=x",
		"../y#z":                        "http://a.example/y#z",
		"//b.example":                   "http://b.example/",
		"g:h":                           "g:h",
		"HTTP://B.example:80":           "http://b.example/",
		"x://xn--a/":                    "x://xn--a/",
		"x:a  #b":                       "x:a %20#b",
		"x:a ?b c":                      "x:a%20?b%20c",
	} {
		got, err := Reference("http://a.example/x/", ref)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	got, err := Reference("", "TEL:+1")
	require.NoError(t, err)
	assert.Equal(t, "tel:+1", got)

	_, err = Reference("", "x")
	assert.ErrorIs(t, err, ErrSyntax)
	_, err = Reference("mailto:me@a.example", "x")
	assert.ErrorIs(t, err, ErrSyntax, "nothing is relative to that")
	_, err = Reference("http://a.example/", "data:"+strings.Repeat("x", MaxLength))
	assert.ErrorIs(t, err, ErrTooLong)
	_, err = Reference("http://a.example/", strings.Repeat("é", MaxLength/3))
	assert.ErrorIs(t, err, ErrTooLong, "as it is spelled")
	_, err = Reference("", "http://"+strings.Repeat("@", maxAt+1)+"a.example/")
	assert.ErrorIs(t, err, ErrSyntax)
}
