package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingHasGrown(t *testing.T) {
	now, err := measure("../..")
	require.NoError(t, err)
	_, grown := judge(kept, now)
	require.Empty(t, grown)
	for line := range strings.Lines(kept) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if n, err := strconv.Atoi(number); err == nil && !strings.HasPrefix(name, executed) {
			require.GreaterOrEqual(t, now[name], n-n/50, "%s has fallen: go run ./internal/ratchet -update", name)
		}
	}
}

func TestJudge(t *testing.T) {
	text, grown := judge("# a comment of words\n 5  as it was\n 5  less\n 5  more\n 5  gone\n 9  root files executed by it\n", map[string]int{"as it was": 5, "less": 4, "more": 6})
	require.Equal(t, "# a comment of words\n      5  as it was\n      4  less\n      5  more\n      5  gone\n      9  root files executed by it\n", text)
	require.Equal(t, []string{"more: 6, was 5", "nothing measures gone"}, grown)
}
