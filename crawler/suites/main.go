// Command suites runs other projects' conformance cases against the crawler's packages and prints
// the result of each case:
//
//	go run ./crawler/suites [-suites DIR] [-v]
//
// It reads all files in DIR; the name of a file selects the kind of its cases (see kinds), so that
// other files of the same shape can be run. Without the flag, the environment variable SUITES names
// the folder; without that, the cases in the packages' testdata are run. Cases that are expected to
// fail are printed with the reason.
//
// A case is passed, failed, contested (reference implementations differ on it), optional (one
// implementation's own habit), or deviates (answered differently on purpose). The exit status is 1
// if a case failed, 2 if a file could not be read.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	dir := flag.String("suites", os.Getenv("SUITES"), "folder with the `DIR`ectory of suites; without it the packages' own testdata")
	verbose := flag.Bool("v", false, "print the cases that passed, too")
	flag.Parse()
	files, err := find(*dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(2)
	}
	code := 0
	for _, file := range files {
		r, err := run(file)
		if err != nil {
			fmt.Fprintf(os.Stderr, "suites: %s: %v\n", file, err)
			code = 2
			continue
		}
		r.print(os.Stdout, *verbose)
		if r.count(failed) > 0 {
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// kinds say by the beginning of a file's name how its cases are run.
var kinds = []struct {
	prefix string
	run    func(*report, []byte) error
}{
	{"robots", whole(runRobots)},
	{"urltestdata", each(runURLs)},
	{"resolve", whole(runResolve)},
	{"urlnorm", whole(runNormalize)},
	{"psl", whole(runRegistrable)},
	{"percent_encoding", each(runPercentEncoding)},
	{"percent-encoding", each(runPercentEncoding)},
	{"toascii", each(runToASCII)},
	{"mime", each(runMIMETypes)},
	{"generated-mime", each(runMIMETypes)},
	{"content", each(runContentTypes)},
	{"charset", whole(runCharset)},
	{"srcset", whole(runSrcset)},
	{"sitemaps", whole(runSitemaps)},
}

// whole reads a file of one value.
func whole[T any](run func(*report, T) error) func(*report, []byte) error {
	return func(r *report, raw []byte) error {
		var file T
		if err := json.Unmarshal(raw, &file); err != nil {
			return err
		}
		return run(r, file)
	}
}

// each reads a list of cases. Strings in it are comments.
func each[T any](run func(*report, T) error) func(*report, []byte) error {
	return whole(func(r *report, file []json.RawMessage) error {
		for _, m := range file {
			if m[0] != '{' {
				continue
			}
			if err := whole(run)(r, m); err != nil {
				return err
			}
		}
		return nil
	})
}

// find returns the suites in a folder, or the packaged ones.
func find(dir string) ([]string, error) {
	pattern := filepath.Join(dir, "*.json")
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			return nil, err
		}
		pattern = filepath.Join(root, "*", "*", "testdata", "*.json")
	} else if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	all, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	files := slices.DeleteFunc(all, func(file string) bool {
		unknown := runner(file) == nil
		if unknown && dir != "" {
			fmt.Fprintf(os.Stderr, "suites: %s is not run: its name begins with none of %s\n", file, prefixes())
		}
		return unknown
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no suites there; their names begin with one of %s", pattern, prefixes())
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return files, nil
}

func prefixes() string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.prefix)
	}
	return strings.Join(all, ", ")
}

// moduleRoot returns the next folder up that holds a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("not within the module: name a folder with -suites")
		}
		dir = up
	}
}

func runner(file string) func(*report, []byte) error {
	for _, k := range kinds {
		if strings.HasPrefix(filepath.Base(file), k.prefix) {
			return k.run
		}
	}
	return nil
}

// run runs the cases of one file.
func run(file string) (*report, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &report{name: filepath.Base(file)}
	if err := runner(file)(r, raw); err != nil {
		return nil, err
	}
	if len(r.results) == 0 {
		return nil, errors.New("no cases in it")
	}
	return r, nil
}

// verdict is the result of a case.
type verdict uint8

const (
	passed verdict = iota
	failed
	contested // whether the answer matches the file or not: see result.detail
	optional
	deviates
	verdicts
)

var verdictNames = [verdicts]string{"passed", "failed", "contested", "optional", "deviates"}

func (v verdict) String() string { return verdictNames[v] }

type result struct {
	id      string
	verdict verdict
	detail  string // the actual answer, or the reason
}

// report is the results of one file.
type report struct {
	name    string
	results []result
}

func (r *report) add(id string, v verdict, detail string) {
	r.results = append(r.results, result{id, v, detail})
}

// expect adds a case that passes if got equals want.
func (r *report) expect(id, want, got string) {
	if got == want {
		r.add(id, passed, "")
	} else {
		r.add(id, failed, fmt.Sprintf("got %q, want %q", got, want))
	}
}

func (r *report) count(v verdict) (n int) {
	for _, c := range r.results {
		if c.verdict == v {
			n++
		}
	}
	return n
}

func (r *report) print(w io.Writer, verbose bool) {
	for _, c := range r.results {
		if c.verdict == passed && !verbose {
			continue
		}
		fmt.Fprintf(w, "%-9s %s: %s", c.verdict, r.name, c.id)
		if c.detail != "" {
			fmt.Fprintf(w, ": %s", c.detail)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s: %d cases", r.name, len(r.results))
	for v := range verdicts {
		if n := r.count(v); n > 0 || v <= failed {
			fmt.Fprintf(w, ", %d %s", n, v)
		}
	}
	fmt.Fprintln(w)
}
