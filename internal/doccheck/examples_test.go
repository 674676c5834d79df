// This file checks that the examples of the main package show all of its calls.

package doccheck

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inExamples are the calls that no example needs to show.
var inExamples = map[string]bool{"Check": true} // for tests

// TestEveryCallHasAnExample fails for an exported method of Frontier that no
// example of its package calls, and for an example whose output is not checked.
func TestEveryCallHasAnExample(t *testing.T) {
	_, files := sources(t, root, func(path string) bool { return filepath.Dir(path) == filepath.Clean(root) })
	methods, shown := map[string]bool{}, map[string]bool{}
	for path, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case f.Recv != nil && receiver(f.Recv).Name == "Frontier" && f.Name.IsExported() && !strings.HasSuffix(path, "_test.go"):
				methods[f.Name.Name] = true
			case f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example"):
				assert.True(t, checked(file, f), "the output of %s is not checked", f.Name.Name)
				ast.Inspect(f, func(n ast.Node) bool {
					if call, ok := n.(*ast.SelectorExpr); ok {
						shown[call.Sel.Name] = true
					}
					return true
				})
			}
		}
	}
	require.True(t, methods["Add"], "the methods were found")
	for m := range methods {
		assert.True(t, shown[m] || inExamples[m], "no example calls Frontier.%s", m)
	}
}

// checked reports whether an example ends with the output that it must have.
func checked(file *ast.File, f *ast.FuncDecl) bool {
	for _, c := range file.Comments {
		if c.Pos() > f.Pos() && c.End() < f.End() && strings.HasPrefix(c.Text(), "Output:") {
			return true
		}
	}
	return false
}
