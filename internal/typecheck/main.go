// Typecheck checks packages as the compiler does before it makes code, for other systems, too:
//
//	go run ./internal/typecheck [-for OS/ARCH,...] [-overlay FILE] PACKAGES
//
// It finds what a build of the packages would find: names, types and files that are missing on a
// system, imports and variables that nothing uses, and functions without a body. It takes a tenth of
// the time, as nothing is compiled: of packages of other modules only the declarations are looked at.
// Packages are patterns of go build, and so is the overlay.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

func main() {
	log.SetFlags(0)
	systems := flag.String("for", runtime.GOOS+"/"+runtime.GOARCH, "the systems, with commas between")
	overlay := flag.String("overlay", "", "JSON file that says which files replace which, as for go build")
	flag.Parse()
	if err := check(strings.Split(*systems, ","), *overlay, flag.Args()); err != nil {
		log.Fatal("typecheck: ", err)
	}
}

// check checks the packages for each system, side by side.
func check(systems []string, overlay string, patterns []string) error {
	instead, err := readOverlay(overlay)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, len(systems))
	for i, system := range systems {
		all.Go(func() {
			pkgs, err := list(system, overlay, patterns)
			if err == nil {
				err = newChecker(system, instead).all(pkgs)
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", system, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// readOverlay returns the names of the files that replace others.
func readOverlay(name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var o struct{ Replace map[string]string }
	return o.Replace, json.Unmarshal(text, &o)
}

// pkg is a package as go list describes it.
type pkg struct {
	ImportPath string
	Dir        string // EmbedFiles, which nothing reads, makes go list look for them
	GoFiles    []string
	SFiles     []string
	ImportMap  map[string]string
	Module     *struct {
		Main      bool
		GoVersion string
	}
}

func (p *pkg) ours() bool { return p.Module != nil && p.Module.Main }

// list returns the packages and all that they import, each after what it imports.
func list(system, overlay string, patterns []string) (pkgs []*pkg, err error) {
	goos, goarch, _ := strings.Cut(system, "/")
	args := []string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,SFiles,EmbedFiles,ImportMap,Module"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(append(args, "--"), patterns...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	for lines := json.NewDecoder(out); err == nil; {
		p := new(pkg)
		if err = lines.Decode(p); err == nil {
			pkgs = append(pkgs, p)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return pkgs, nil
}

// checker checks the packages of a system.
type checker struct {
	instead map[string]string
	fset    *token.FileSet
	sizes   types.Sizes
	checked map[string]*types.Package
	errs    []error
}

func newChecker(system string, instead map[string]string) *checker {
	_, arch, _ := strings.Cut(system, "/")
	return &checker{
		instead: instead, fset: token.NewFileSet(), sizes: types.SizesFor("gc", arch),
		checked: map[string]*types.Package{"unsafe": types.Unsafe},
	}
}

// all checks packages in their order.
func (c *checker) all(pkgs []*pkg) error {
	if c.sizes == nil {
		return errors.New("no such system")
	}
	for _, p := range pkgs {
		if p.ImportPath != "unsafe" {
			c.one(p)
		}
	}
	return errors.Join(c.errs...)
}

func (c *checker) one(p *pkg) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		name = filepath.Join(p.Dir, name)
		file, err := parser.ParseFile(c.fset, cmp.Or(c.instead[name], name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		if files = append(files, file); p.ours() && len(p.SFiles) == 0 {
			c.bodies(file)
		}
	}
	config := types.Config{
		Importer: from{c, p}, Sizes: c.sizes, IgnoreFuncBodies: !p.ours(),
		Error: func(err error) { c.errs = append(c.errs, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	c.checked[p.ImportPath], _ = config.Check(p.ImportPath, c.fset, files, nil) // Error has reported it
}

// bodies finds functions without a body.
func (c *checker) bodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body == nil {
			c.errs = append(c.errs, fmt.Errorf("%v: %s has no body", c.fset.Position(f.Pos()), f.Name.Name))
		}
	}
}

// from finds what a package imports.
type from struct {
	*checker
	by *pkg
}

func (f from) Import(path string) (*types.Package, error) {
	if p := f.checked[cmp.Or(f.by.ImportMap[path], path)]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s does not say that it imports %s", f.by.ImportPath, path)
}
