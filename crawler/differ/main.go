// Command differ puts generated questions to our parsers and to other projects', and judges which is
// right where they differ:
//
//	crawler/differ/run [-n N] [-seed SEED] [-urls-file LIST.gz] [urls|pages|robots]...
//
// Without a kind it runs all of them:
//
//   - urls: a URL on a base; urlnorm and ada, the parser of Node.js
//   - pages: the links of a broken page; link and Lexbor, a tree builder by the HTML Standard
//   - robots: robots.txt, an agent and a URL; robots and Google's parser
//
// The script installs the other parsers, which are packages for Python, and runs this program; go run ./crawler/differ
// -python PYTHON uses an interpreter that has them. For heads of answers and curl there is
// TestOddAnswersAgainstCurl in crawler/fetch.
//
// For each kind it prints the seed, the number of questions, and the differences by verdict, with an example of each. The
// exit status is 1 if a difference has no verdict, 2 if a peer fails.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	_ "embed"
)

// question is what both parsers are asked.
type question interface {
	// judge compares the peer's answer with ours. It returns the verdict on a difference, unjudged if it knows none, or
	// an empty string if both agree.
	judge(answer []byte) string
}

// unjudged is what a verdict on an unexplained difference begins with.
const unjudged = "NOT JUDGED: "

type kind struct {
	name, peer string
	make       func(*rand.Rand) question
}

func main() {
	n := flag.Int("n", 20_000, "`number` of questions of each kind")
	seed := flag.Uint64("seed", 1, "what the questions are made of")
	python := flag.String("python", "python3", "interpreter with the packages of requirements.txt")
	file := flag.String("urls-file", "", "`LIST.gz` of real URLs to change")
	most := flag.Int("show", 10, "unexplained differences to print")
	flag.Parse()
	real, err := readURLs(*file)
	if err != nil {
		fatal(err)
	}
	kinds := []kind{
		{"urls", "ada", func(r *rand.Rand) question { return makeURL(r, real) }},
		{"pages", "Lexbor", makePage},
		{"robots", "Google's", makeRobots},
	}
	for _, name := range flag.Args() {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name }) {
			fatal(fmt.Errorf("%q is no kind", name))
		}
	}
	code := 0
	for _, k := range kinds {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), k.name) {
			continue
		}
		r := rand.New(rand.NewPCG(*seed, 0))
		found, err := k.compare(*python, *n, r)
		if err != nil {
			fatal(fmt.Errorf("%s: %w", k.name, err))
		}
		fmt.Printf("%s: %d questions, seed %d, %d differences from %s\n", k.name, *n, *seed, found.total(), k.peer)
		found.print(os.Stdout, *most)
		if len(found.unjudged) > 0 {
			code = 1
		}
	}
	os.Exit(code)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "differ:", err)
	os.Exit(2)
}

// compare asks n questions.
func (k kind) compare(python string, n int, r *rand.Rand) (*findings, error) {
	script := filepath.Join(os.TempDir(), fmt.Sprintf("differ-%d.py", os.Getpid()))
	if err := os.WriteFile(script, peers, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(script)
	cmd := exec.Command(python, script, k.name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	asked := make(chan question, 1<<10)
	sent := make(chan error, 1)
	go func() {
		defer close(asked)
		w := bufio.NewWriter(in)
		e := json.NewEncoder(w)
		var err error
		for range n {
			q := k.make(r)
			if err = e.Encode(q); err != nil {
				break
			}
			asked <- q
		}
		sent <- errors.Join(err, w.Flush(), in.Close())
	}()
	found := &findings{count: map[string]int{}, example: map[string]string{}}
	answers := bufio.NewReader(out)
	for q := range asked {
		line, err := answers.ReadBytes('\n')
		if err != nil {
			_ = cmd.Process.Kill()
			for range asked { // lets the sender end
			}
			return nil, errors.Join(fmt.Errorf("the peer ended: %w", err), cmd.Wait())
		}
		found.add(q, line, q.judge(line))
	}
	return found, errors.Join(<-sent, cmd.Wait())
}

// findings are the differences of a kind.
type findings struct {
	count    map[string]int    // by verdict
	example  map[string]string // the shortest of each
	unjudged []string
}

func (f *findings) add(q question, answer []byte, verdict string) {
	if verdict == "" {
		return
	}
	asked, _ := json.Marshal(q)
	text := fmt.Sprintf("%s: %s", asked, bytes.TrimSpace(answer))
	if why, ok := strings.CutPrefix(verdict, unjudged); ok {
		f.unjudged = append(f.unjudged, why+": "+text)
		return
	}
	f.count[verdict]++
	if old, ok := f.example[verdict]; !ok || len(text) < len(old) {
		f.example[verdict] = text
	}
}

func (f *findings) total() int {
	n := len(f.unjudged)
	for _, c := range f.count {
		n += c
	}
	return n
}

func (f *findings) print(w io.Writer, most int) {
	for _, v := range slices.Sorted(maps.Keys(f.count)) {
		fmt.Fprintf(w, "%7d  %s\n         such as %s\n", f.count[v], v, f.example[v])
	}
	if len(f.unjudged) == 0 {
		return
	}
	fmt.Fprintf(w, "%7d  without a verdict\n", len(f.unjudged))
	slices.SortFunc(f.unjudged, func(a, b string) int { return len(a) - len(b) })
	for _, d := range f.unjudged[:min(most, len(f.unjudged))] {
		fmt.Fprintf(w, "         %s\n", d)
	}
}

//go:embed peers.py
var peers []byte
