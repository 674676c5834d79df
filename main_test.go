// This file sets up the tests, and checks what the package imports and its file map.

package frontier_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Whoever needs a frontier in memory must not compile a database.
func TestRootImportsLittle(t *testing.T) {
	const module = "github.com/seed-7440039f/frontier"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module).CombinedOutput()
	require.NoError(t, err, "%s", out)
	allowed := []string{module, module + "/selector", module + "/storage", "github.com/google/btree", "github.com/dchest/siphash"}
	got := strings.Fields(string(out))
	require.Contains(t, got, module)
	for _, p := range got {
		if !strings.HasPrefix(p, module+"/internal/") {
			require.True(t, slices.Contains(allowed, p), "the root package depends on %s", p)
		}
	}
}

// The file map in doc.go names each source file of the root and each package of internal,
// and nothing else.
func TestFileMapIsComplete(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, fileMap, found := strings.Cut(string(doc), "// File map, ")
	require.True(t, found)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return f == "doc.go" || strings.HasSuffix(f, "_test.go") })
	require.ElementsMatch(t, files, regexp.MustCompile(`\b\w+\.go\b`).FindAllString(fileMap, -1))
	dirs, err := filepath.Glob("internal/*")
	require.NoError(t, err)
	for _, d := range dirs {
		require.Regexp(t, `\b`+filepath.Base(d)+`\b`, fileMap)
	}
}
