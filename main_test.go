// This file sets up the tests, and checks what the package imports and its file map.

package frontier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Whoever needs a frontier in memory must not compile a database.
func TestRootImportsLittle(t *testing.T) {
	const module = "github.com/seed-7440039f/frontier"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module).CombinedOutput()
	require.NoError(t, err, "%s", out)
	allowed := []string{module, module + "/event", module + "/scope", module + "/selector", module + "/storage", "github.com/google/btree", "github.com/dchest/siphash"}
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

// The names of methods say what they do with the lock: see shard.
func TestNamesSayWhatTheLockDoes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasSuffix(fn.Name.Name, "Locked") || strings.HasSuffix(path, "_test.go") {
				continue
			}
			name := fn.Name.Name
			if name == "submitAsyncLocked" { // its ops are too small for applyYieldingLocked to yield
				continue
			}
			require.Equal(t, strings.Contains(name, "Yielding"), givesUpTheLock(fn.Body), "%s: %s", path, name)
		}
	}
}

// givesUpTheLock reports whether a body does so, or calls a method that does.
func givesUpTheLock(body *ast.BlockStmt) (gives bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			return false // runs later
		case *ast.SelectorExpr:
			in, ok := x.X.(*ast.SelectorExpr)
			gives = gives || x.Sel.Name == "yield" || strings.HasSuffix(x.Sel.Name, "YieldingLocked") || strings.HasSuffix(x.Sel.Name, "Yielding") || strings.HasSuffix(x.Sel.Name, "AndUnlock") ||
				x.Sel.Name == "Unlock" && ok && in.Sel.Name == "mu"
		}
		return true
	})
	return gives
}
