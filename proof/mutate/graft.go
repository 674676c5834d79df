// This file puts many mutations into one program, one of which is active at a time: building the
// tests for each mutation would take most of the time.
//
// A mutated function is added under another name. The original first checks the environment, and
// calls the mutated one if it is active.

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// turn is the variable of the environment with the number of the mutation that is
// in force.
const turn = "FRONTIER_MUTATION"

// switched is the file that each mutated package gets.
const switched = `package %s

import (
	"os"
	"strconv"
)

var mutationInForce, _ = strconv.Atoi(os.Getenv(%q))
`

// graft returns the files, by their paths from root, that differ when they include all mutations.
// The number of a mutation is its index plus 1.
func graft(root string, all []mutation) (map[string][]byte, error) {
	files := map[string][]byte{}
	for i := range all {
		name := all[i].file
		if files[name] != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		f, err := newGrafted(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for j := range all {
			if all[j].file != name {
				continue
			}
			mutated, err := all[j].apply(root)
			if err == nil {
				err = f.add(j+1, mutated)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[j].name, err)
			}
		}
		if files[name], err = f.text(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[path.Join(path.Dir(name), "mutation_in_force.go")] = fmt.Appendf(nil, switched, f.pkg, turn)
	}
	return files, nil
}

// grafted is a file that gets mutated functions.
type grafted struct {
	pkg   string
	old   []byte
	funcs map[string]*ast.FuncDecl // by receiver and name
	file  *token.File
	edits []edit
	named map[*ast.FuncDecl][]string // arguments, receiver first; those without a name have got one
	more  bytes.Buffer               // the mutated functions
}

// edit replaces old[from:to].
type edit struct {
	from, to int
	text     string
}

func newGrafted(text []byte) (*grafted, error) {
	g := &grafted{old: text, named: map[*ast.FuncDecl][]string{}}
	var err error
	g.pkg, g.file, g.funcs, err = functions(text)
	return g, err
}

func functions(text []byte) (pkg string, _ *token.File, _ map[string]*ast.FuncDecl, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, nil, err
	}
	funcs := map[string]*ast.FuncDecl{}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			key := d.Name.Name
			if d.Recv != nil {
				at := set.File(f.Pos())
				key += string(text[at.Offset(d.Recv.Pos()):at.Offset(d.Recv.End())])
			}
			funcs[key] = d
		}
	}
	return f.Name.Name, set.File(f.Pos()), funcs, nil
}

func source(file *token.File, text []byte, d *ast.FuncDecl) string {
	return string(text[file.Offset(d.Pos()):file.Offset(d.End())])
}

// add adds mutation n of the file, which changes one function.
func (g *grafted) add(n int, mutated []byte) error {
	_, file, funcs, err := functions(mutated)
	if err != nil {
		return err
	}
	changed := ""
	for key, d := range funcs {
		d.Doc = nil
		was := g.funcs[key]
		if was == nil {
			return fmt.Errorf("%s is new; want a function that changes", key)
		}
		was.Doc = nil
		if source(g.file, g.old, was) == source(file, mutated, d) {
			continue
		}
		if changed != "" {
			return fmt.Errorf("%s and %s change; want one function", changed, key)
		}
		changed = key
	}
	if changed == "" || len(funcs) != len(g.funcs) {
		return fmt.Errorf("want one function that changes")
	}
	name := fmt.Sprintf("%sMutation%d", funcs[changed].Name.Name, n)
	d := funcs[changed]
	from, at := file.Offset(d.Pos()), file.Offset(d.Name.Pos())
	fmt.Fprintf(&g.more, "\n%s%s%s\n", mutated[from:at], name, mutated[at+len(d.Name.Name):file.Offset(d.End())])
	g.dispatch(g.funcs[changed], n, name)
	return nil
}

// dispatch lets d call the function of this name if mutation n is in force.
func (g *grafted) dispatch(d *ast.FuncDecl, n int, name string) {
	args := g.arguments(d)
	if d.Recv != nil {
		name, args = args[0]+"."+name, args[1:]
	}
	call := fmt.Sprintf("%s(%s)", name, strings.Join(args, ", "))
	if d.Type.Results != nil {
		call = "return " + call
	} else {
		call += "\nreturn"
	}
	at := g.file.Offset(d.Body.Lbrace) + 1
	g.edits = append(g.edits, edit{at, at, fmt.Sprintf("\nif mutationInForce == %d {\n%s\n}\n", n, call)})
}

// arguments returns the names of a function's arguments, its receiver first, for passing them on.
// It names those that have none.
func (g *grafted) arguments(d *ast.FuncDecl) (names []string) {
	if names, ok := g.named[d]; ok {
		return names
	}
	fields := d.Type.Params.List
	if d.Recv != nil {
		fields = append(slices.Clone(d.Recv.List), fields...)
	}
	for _, f := range fields {
		after := ""
		if _, ok := f.Type.(*ast.Ellipsis); ok {
			after = "..."
		}
		if len(f.Names) == 0 {
			name, at := fmt.Sprintf("argument%d", len(names)), g.file.Offset(f.Type.Pos())
			g.edits = append(g.edits, edit{at, at, name + " "})
			names = append(names, name+after)
		}
		for _, x := range f.Names {
			name := x.Name
			if name == "_" {
				name = fmt.Sprintf("argument%d", len(names))
				g.edits = append(g.edits, edit{g.file.Offset(x.Pos()), g.file.Offset(x.End()), name})
			}
			names = append(names, name+after)
		}
	}
	g.named[d] = names
	return names
}

func (g *grafted) text() ([]byte, error) {
	slices.SortStableFunc(g.edits, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, e := range g.edits {
		out.Write(g.old[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(g.old[at:])
	out.Write(g.more.Bytes())
	return format.Source(out.Bytes())
}
