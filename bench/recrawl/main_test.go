package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryPolicyRuns(t *testing.T) {
	var out strings.Builder
	require.NoError(t, compare(&out, 200, 1, "web", append(policies, inFrontier)))
	for _, p := range append(policies, inFrontier) {
		assert.Equal(t, 5, strings.Count(out.String(), p.name+" "), p.name)
	}
	assert.NotContains(t, out.String(), "NaN")
}
