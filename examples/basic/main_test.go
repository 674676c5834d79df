package main

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDemo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, demo(t.Context(), &out, false, 20*time.Millisecond))
	got := out.String()
	assert.Regexp(t, `fast.example +91 +0 `, got, "30 pages, 30 private ones, 31 missing ones")
	assert.Regexp(t, `strict.example +25 +12 `, got, "12 pages, 13 missing ones")
	assert.NotRegexp(t, `broken.example +([1-9]|0 +[1-9])`, got, "nothing of it was visited or denied")
	rows := regexp.MustCompile(`(?m)^\S+\.example +\d+ +\d+ +(\S+) +(\S+)$`).FindAllStringSubmatch(got, -1)
	require.GreaterOrEqual(t, len(rows), 4, got)
	for _, r := range rows {
		gap, err1 := time.ParseDuration(r[1])
		owed, err2 := time.ParseDuration(r[2])
		require.NoError(t, err1)
		require.NoError(t, err2)
		assert.GreaterOrEqual(t, gap, owed, r[0])
	}
	assert.Contains(t, got, "\npolite: ")
	assert.Contains(t, got, "12 denied by robots.txt, 1 URLs given up with a site that never answers")
}
