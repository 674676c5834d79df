// This file checks that every exported identifier of the module has a comment,
// and that examples show every call of the main package.

package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the module's folder, seen from here.
const root = "../.."

// sources parses the Go files of the folders below dir that keep says yes to.
func sources(t *testing.T, dir string, keep func(path string) bool) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	set, files := token.NewFileSet(), map[string]*ast.File{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || !keep(path) {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		files[path] = file
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return set, files
}

// TestExportedHaveComments fails for an exported constant, variable, function,
// type or method, or a package, that says nothing about itself. Constants and
// variables of a group are covered by the comment of the group or of the first.
// Fields are left to the eye: one comment often speaks for several.
func TestExportedHaveComments(t *testing.T) {
	set, files := sources(t, root, func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
	packages := map[string]bool{}
	for path, file := range files {
		dir := filepath.Dir(path)
		packages[dir] = packages[dir] || file.Doc != nil
		for _, bare := range uncommented(file) {
			t.Errorf("%s: %s has no comment", set.Position(bare.Pos()), bare.Name)
		}
	}
	for dir, said := range packages {
		assert.True(t, said, "the package in %s has no comment", dir)
	}
}

// uncommented returns the exported identifiers of a file without a comment.
func uncommented(file *ast.File) (bare []*ast.Ident) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || receiver(d.Recv).IsExported()) {
				bare = append(bare, d.Name)
			}
		case *ast.GenDecl:
			said := d.Doc != nil
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					said = said || s.Doc != nil || s.Comment != nil
					for _, n := range s.Names {
						if n.IsExported() && !said {
							bare = append(bare, n)
						}
					}
				case *ast.TypeSpec:
					if !s.Name.IsExported() {
						continue
					}
					if d.Doc == nil && s.Doc == nil {
						bare = append(bare, s.Name)
					}
				}
			}
		}
	}
	return bare
}

// receiver is the name of a method's receiver type.
func receiver(l *ast.FieldList) *ast.Ident {
	x := l.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.Ident:
			return e
		default:
			return ast.NewIdent("_")
		}
	}
}
