// This file measures.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module, below = "github.com/seed-7440039f/frontier", "github.com/seed-7440039f/frontier/internal/mercator"

// measure returns the numbers by name. The root is the module's folder.
func measure(root string) (map[string]int, error) {
	fset := token.NewFileSet()
	pkg, info, files, err := check(fset, root)
	if err != nil {
		return nil, err
	}
	now := map[string]int{
		"source files of the root":              len(files),
		"exported names of the root":            exported(pkg),
		"files of the root that use each other": circle(fset, pkg, info, files),
	}
	for _, f := range files {
		now["lines of the root"] += fset.File(f.FileStart).LineCount() - 1
	}
	fields, methods := size(pkg, "Frontier")
	door := map[types.Object]bool{}
	for _, o := range info.Uses {
		if p := o.Pkg(); p != nil && p.Path() == below {
			if door[o] = true; len(door) == 1 {
				x, y := size(p, "Core")
				fields, methods = max(fields, x), max(methods, y)
			}
		}
	}
	now["fields of the larger of Frontier and mercator.Core"], now["methods of the larger of Frontier and mercator.Core"] = fields, methods
	now["names of mercator that the root uses, fields among them"] = len(door)
	for kind, lines := range map[string]func(string) bool{
		"lines of the library, the crawler and the command":  func(file string) bool { return !laboratory(file) && !ofFleet(file) },
		"lines of the fleet, with its engine and its faults": ofFleet,
		"lines of the laboratory":                            laboratory,
	} {
		if now[kind], err = count(root, lines); err != nil {
			return nil, err
		}
	}
	for name, n := range now {
		if strings.HasPrefix(name, "lines of ") {
			now[name] = (n + 99) / 100 * 100
		}
	}
	return now, nil
}

// executed begins the names of what measureCalls counts.
const executed = "root files executed by "

func measureCalls(now map[string]int) error {
	const calls = "./internal/ratchet/calls"
	cmd := exec.Command("go", "run", "-cover", "-covermode=atomic", "-coverpkg="+module+","+calls, calls)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", calls, err)
	}
	for line := range strings.Lines(string(out)) {
		name, files, _ := strings.Cut(line, ": ")
		now[executed+name] = len(strings.Fields(files))
	}
	return nil
}

// ofFleet says whether a file divides a frontier over machines, or lets them share one.
func ofFleet(file string) bool {
	return within(file, "fleet", "cmd/frontier/fleet.go", "cmd/frontier/route.go", "urlfrontier/router.go", "urlfrontier/routecalls.go", "urlfrontier/routeget.go", "urlfrontier/routeorder.go", "urlfrontier/routeput.go")
}

// laboratory says whether a file only tries and measures the rest.
func laboratory(file string) bool {
	return within(file, "bench", "proof", "test", "examples", "docs", "simclock", "console/browser", "crawler/realweb", "crawler/suites", "crawler/differ",
		"internal/lab", "internal/doccheck", "internal/layers", "internal/ratchet", "internal/typecheck", "spill/spilltest", "spill/internal/kvtest")
}

func within(file string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(x string) bool { return file == x || strings.HasPrefix(file, x+"/") })
}

// count adds up the lines of some source files, without tests and generated ones.
func count(root string, in func(file string) bool) (lines int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil || !in(filepath.ToSlash(file)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && !bytes.HasPrefix(text, []byte("// Code generated")) {
			lines += bytes.Count(text, []byte("\n"))
		}
		return err
	})
	return lines, err
}

// check parses the root package and checks its types.
func check(fset *token.FileSet, root string) (*types.Package, *types.Info, []*ast.File, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}}={{.Export}}{{if eq .ImportPath "`+module+`"}}{{range .GoFiles}}|{{.}}{{end}}{{end}}`, module)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var files []*ast.File
	for line := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), "=")
		words := strings.Split(export, "|")
		exports[path] = words[0]
		for _, name := range words[1:] {
			f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, 0)
			if err != nil {
				return nil, nil, nil, err
			}
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, nil, nil, errors.New("go list knows no file of " + module)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := conf.Check(module, fset, files, info)
	return pkg, info, files, err
}

// exported counts what other packages can name: types, functions, constants, variables and methods.
func exported(pkg *types.Package) (n int) {
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		n++
		t, ok := o.Type().(*types.Named)
		if _, is := o.(*types.TypeName); !is || !ok {
			continue
		}
		for m := range t.Methods() {
			if m.Exported() {
				n++
			}
		}
	}
	return n
}

// size returns how many fields and methods a struct has, with those of the package's structs that it
// embeds.
func size(pkg *types.Package, name string) (fields, methods int) {
	o := pkg.Scope().Lookup(name)
	if o == nil {
		return 0, 0
	}
	seen := map[*types.Named]bool{}
	var add func(t types.Type)
	add = func(t types.Type) {
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		named, ok := t.(*types.Named)
		if !ok || seen[named] || named.Obj().Pkg() != pkg {
			return
		}
		seen[named] = true
		methods += named.NumMethods()
		s, ok := named.Underlying().(*types.Struct)
		if !ok {
			return
		}
		for f := range s.Fields() {
			if f.Embedded() {
				add(f.Type())
			} else {
				fields++
			}
		}
	}
	add(o.Type())
	return fields, methods
}

// circle returns the size of the largest group of files in which each uses each other, directly or
// through others of the group.
func circle(fset *token.FileSet, pkg *types.Package, info *types.Info, files []*ast.File) (largest int) {
	uses := map[string]map[string]bool{} // from a file to files
	for id, o := range info.Uses {
		if o.Pkg() != pkg {
			continue
		}
		from, to := fset.Position(id.Pos()).Filename, fset.Position(o.Pos()).Filename
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	reach := map[string]map[string]bool{}
	for from := range uses {
		reached, next := map[string]bool{}, []string{from}
		for len(next) > 0 {
			at := next[len(next)-1]
			next = next[:len(next)-1]
			for to := range uses[at] {
				if !reached[to] {
					reached[to] = true
					next = append(next, to)
				}
			}
		}
		reach[from] = reached
	}
	for _, from := range slices.Sorted(maps.Keys(reach)) {
		n := 0
		for to := range reach[from] {
			if reach[to][from] {
				n++
			}
		}
		largest = max(largest, n)
	}
	return largest
}
