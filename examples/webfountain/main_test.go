package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTablesAndFigures(t *testing.T) {
	var out strings.Builder
	folder := t.TempDir()
	require.NoError(t, paper(&out, folder))
	assert.Equal(t, 5, strings.Count(out.String(), "%\n"), out.String())
	for _, name := range []string{"figure3.svg", "figure4.svg", "figure5.svg", "figure6.svg"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		assert.NoError(t, xml.Unmarshal(text, new(struct{})), name)
	}
}

func TestAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m.json")
	model := `{"periods": 2, "pages": [100, 50], "change": [[0.5], [0.1]], "budget": [50], "oldWeight": [[1]], "new": 5, "newWeight": [1]}`
	require.NoError(t, os.WriteFile(name, []byte(model), 0o666))
	var out strings.Builder
	require.NoError(t, solveFile(&out, name, ""))
	assert.Equal(t, 1, strings.Count(out.String(), "share new"))
	out.Reset()
	require.NoError(t, solveFile(&out, name, "2,2,1"))
	assert.Equal(t, 3, strings.Count(out.String(), "share new"))
	assert.ErrorContains(t, solveFile(&out, name, "2,4"), `"4" is no strategy`)
	require.NoError(t, os.WriteFile(name, []byte(`{"periods": 0}`), 0o666))
	assert.ErrorContains(t, solveFile(&out, name, ""), "Periods is 0")
}
