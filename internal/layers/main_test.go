package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImportsGoDown(t *testing.T) {
	imports, err := listed()
	require.NoError(t, err)
	require.Contains(t, imports, ".")
	h, err := parse(layers)
	require.NoError(t, err)
	require.NoError(t, h.draw(io.Discard, imports))
}

func TestWhatIsNotDownwardsIsNamed(t *testing.T) {
	h, err := parse("# a comment\nground a b\nground c\nabove d e/... gone\n")
	require.NoError(t, err)
	err = h.draw(io.Discard, map[string][]string{
		"a": {"d"}, "b": {"c"}, "c": nil,
		"d": {"a", "c"}, "e/f": {"e/g", "a"}, "e/g": nil, "e/h": {"d"},
		"nowhere": nil,
	})
	require.EqualError(t, err, `layers.txt has no floor for nowhere
layers.txt: there is no package gone
e/h (above) imports d (above): not downwards
a (ground) imports d (above): not downwards
b (ground) imports c (ground): not downwards`)
	_, err = parse("ground a\nabove a\n")
	require.ErrorContains(t, err, "a is there twice")
}
