// This file lists who removes files, and why that needs no sync before it.

package kv

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// removers are the functions that remove or cut files. A new one says here what the removal
// rests on, and why that is on the medium: usually because Badger.removing calls it.
var removers = map[string]string{
	"RemoveFiles":  "in removing",
	"remove":       "of values: drop, in removing",
	"cut":          "of a log: nothing in it was ever on the medium, or whole",
	"settle":       "statistics of the engine, which it makes again",
	"removeUnborn": "empty files",
	"rehearse":     "a copy, or a file that was just made",
	"fileFor":      "a file that was just made",
	"makeAhead":    "a file that was just made",
	"close":        "a log that was made ahead and is empty",
}

func TestFilesAreRemovedInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains([]string{"Remove", "RemoveAll", "Rename", "Truncate"}, s.Sel.Name) {
					found = append(found, fn.Name.Name)
					require.Contains(t, removers, fn.Name.Name, "%s: os.%s", name, s.Sel.Name)
				}
				if s.Sel.Name == "drop" && fn.Name.Name != "removeEmpty" {
					require.Fail(t, "only Badger.removing may remove values", "%s in %s", fn.Name.Name, name)
				}
				return true
			})
		}
	}
	for name := range removers {
		require.Contains(t, found, name, "it removes nothing")
	}
}
