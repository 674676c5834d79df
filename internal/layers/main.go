// Layers prints the packages of this module by layer, and which import which:
//
//	go run ./internal/layers
//
// The layers are defined in layers.txt. An import that does not lead to a lower layer is marked
// with "upwards", and the exit status is 1. A test runs the same check.
package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/seed-7440039f/frontier"

//go:embed layers.txt
var layers string

func main() {
	log.SetFlags(0)
	imports, err := listed()
	if err != nil {
		log.Fatal(err)
	}
	h, err := parse(layers)
	if err != nil {
		log.Fatal(err)
	}
	if err := h.draw(os.Stdout, imports); err != nil {
		log.Fatal(err)
	}
}

// listed returns the imports within the module of each of its packages, as paths in the module. The
// root is ".".
func listed() (map[string][]string, error) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		var own []string
		for _, p := range strings.Fields(line) {
			if p == module {
				own = append(own, ".")
			} else if rest, ok := strings.CutPrefix(p, module+"/"); ok {
				own = append(own, rest)
			}
		}
		imports[own[0]] = own[1:]
	}
	return imports, nil
}

// house holds the layers, from the lowest up, and the layer of each package, or of the packages
// below a folder ("folder/...").
type house struct {
	floors []string
	floor  map[string]int
}

func parse(text string) (*house, error) {
	h := &house{floor: map[string]int{}}
	s := bufio.NewScanner(strings.NewReader(text))
	for s.Scan() {
		words := strings.Fields(s.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(h.floors) == 0 || h.floors[len(h.floors)-1] != words[0] {
			h.floors = append(h.floors, words[0])
		}
		for _, p := range words[1:] {
			if _, twice := h.floor[p]; twice {
				return nil, fmt.Errorf("layers.txt: %s is there twice", p)
			}
			h.floor[p] = len(h.floors) - 1
		}
	}
	return h, s.Err()
}

// of returns the layer of a package, and the entry that defines it.
func (h *house) of(p string) (floor int, entry string, ok bool) {
	if n, ok := h.floor[p]; ok {
		return n, p, true
	}
	for dir := p; dir != ""; {
		if n, ok := h.floor[dir+"/..."]; ok {
			return n, dir + "/...", true
		}
		dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
	}
	return 0, "", false
}

// draw prints the packages by layer, the highest first, each with its imports. The error names each
// import that does not lead downwards, each package without a layer, and each entry without a
// package. Packages under the same "/..." entry may import each other.
func (h *house) draw(w io.Writer, imports map[string][]string) error {
	var errs []error
	rooms := make([][]string, len(h.floors))
	used := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(imports)) {
		n, entry, ok := h.of(p)
		if !ok {
			errs = append(errs, fmt.Errorf("layers.txt has no floor for %s", p))
			continue
		}
		used[entry] = true
		rooms[n] = append(rooms[n], p)
	}
	for _, entry := range slices.Sorted(maps.Keys(h.floor)) {
		if !used[entry] {
			errs = append(errs, fmt.Errorf("layers.txt: there is no package %s", entry))
		}
	}
	arrows, upwards := 0, 0
	for n, name := range slices.Backward(h.floors) {
		fmt.Fprintf(w, "%d %s\n", n, name)
		for _, p := range rooms[n] {
			fmt.Fprintf(w, "  %s", p)
			_, entry, _ := h.of(p)
			for i, to := range imports[p] {
				if i == 0 {
					fmt.Fprint(w, " ->")
				}
				arrows++
				m, other, _ := h.of(to)
				if m < n || other == entry {
					fmt.Fprintf(w, " %s", to)
					continue
				}
				upwards++
				fmt.Fprintf(w, " %s (upwards)", to)
				errs = append(errs, fmt.Errorf("%s (%s) imports %s (%s): not downwards", p, name, to, h.floors[m]))
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintf(w, "%d packages on %d floors, %d arrows, %d upwards\n", len(imports), len(h.floors), arrows, upwards)
	return errors.Join(errs...)
}
