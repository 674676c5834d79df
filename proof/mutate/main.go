// Mutate breaks the code on purpose, in the ways listed in mutations.txt, one at a time, and checks
// whether the tests notice:
//
//	go run ./proof/mutate                    # all of them: about half an hour on 2 cores
//	go run ./proof/mutate -share 1/10        # every tenth, another one after each commit
//	go run ./proof/mutate 'heap.*' NAME      # those whose names match
//
// It first runs the tests that should notice; if they pass, all tests of their package. It prints a
// table, and exits with 1 if a mutation was not caught. No file is changed: the compiler gets the
// mutated functions with -overlay.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one kills
	os.Exit(mutate(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// mutate returns the exit code: 1 if a mutation was not caught, 2 if the list or
// the arguments make no sense.
func mutate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("mutate", flag.ContinueOnError)
	fs.SetOutput(stderr)
	share := fs.String("share", "1/1", "how many of them: 1/N takes one of N, depending on the last commit")
	named := fs.Bool("named", false, "run only the tests that should notice")
	verbose := fs.Bool("v", false, "print what the tests said")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	all, err := readList(listed)
	if err == nil {
		all, err = choose(all, fs.Args())
	}
	if err == nil {
		all, err = shareOf(all, *share)
	}
	var b *bench
	if err == nil {
		b, err = newBench(ctx, all)
	}
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}
	defer b.close()
	b.named = *named
	survived := 0
	fmt.Fprintln(stdout, "| mutation | the promise that it breaks | caught by |\n|---|---|---|")
	for i, m := range all {
		v, err := b.try(ctx, i)
		if ctx.Err() != nil {
			return 1
		}
		if err != nil {
			fmt.Fprintln(stderr, "mutate:", err)
			return 2
		}
		if *verbose {
			fmt.Fprintf(stderr, "%s\n%s: %v, %v\n", v.said, m.name, v.by, v.took.Round(time.Second/10))
		}
		by := "`" + v.by + "`"
		switch {
		case v.by == "":
			by, survived = "**nobody**", survived+1
		case v.late:
			by += ", not by " + m.expected()
		}
		fmt.Fprintf(stdout, "| %s | %s | %s |\n", m.name, m.breaks, by)
	}
	fmt.Fprintf(stdout, "\nproof: %v\n", trycount.Count{Tried: int64(len(all)), Violations: int64(survived)})
	if survived > 0 {
		fmt.Fprintf(stderr, "mutate: %d of %d were not caught\n", survived, len(all))
		return 1
	}
	return 0
}

// choose returns the mutations whose names match one of the patterns; all if
// there are none.
func choose(all []mutation, patterns []string) (out []mutation, err error) {
	if len(patterns) == 0 {
		return all, nil
	}
	for _, p := range patterns {
		r, err := regexp.Compile("^(?:" + p + ")$")
		if err != nil {
			return nil, err
		}
		n := len(out)
		for _, m := range all {
			if r.MatchString(m.name) {
				out = append(out, m)
			}
		}
		if len(out) == n {
			return nil, fmt.Errorf("no mutation is called %s", p)
		}
	}
	return out, nil
}

// shareOf returns every n-th mutation. The first depends on the last commit, so that over time all
// are run.
func shareOf(all []mutation, share string) (out []mutation, err error) {
	n := 0
	if _, err := fmt.Sscanf(share, "1/%d", &n); err != nil || n < 1 {
		return nil, fmt.Errorf("the share is %q; want 1/N", share)
	}
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		head = nil // not a clone: always the same ones
	}
	h := fnv.New32()
	h.Write(head)
	for i := int(h.Sum32() % uint32(n)); i < len(all); i += n {
		out = append(out, all[i])
	}
	return out, nil
}

// bench is where mutations are tried.
type bench struct {
	root, dir string
	named     bool
	all       []mutation        // that are grafted into the tests
	tests     map[string]string // binaries by package
}

func newBench(ctx context.Context, all []mutation) (*bench, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	path := strings.TrimSpace(string(mod))
	if filepath.Base(path) != "go.mod" {
		return nil, errors.New("run it inside the module")
	}
	b := &bench{root: filepath.Dir(path), all: all, tests: map[string]string{}}
	files, err := graft(b.root, all)
	if err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "frontier-mutate-"); err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for name, text := range files {
		to := filepath.Join(b.dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(b.root, filepath.FromSlash(name))] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return b, os.WriteFile(filepath.Join(b.dir, "overlay.json"), overlay, 0o600)
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// binary builds the tests of a package with all mutations, once.
func (b *bench) binary(ctx context.Context, pkg string) (string, error) {
	if b.tests[pkg] != "" {
		return b.tests[pkg], nil
	}
	tests := filepath.Join(b.dir, fmt.Sprintf("tests%d", len(b.tests)))
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", filepath.Join(b.dir, "overlay.json"), "-o", tests, pkg)
	cmd.Dir = b.root
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the tests of %s do not build with the mutations: %w\n%s", pkg, err, said)
	}
	b.tests[pkg] = tests
	return tests, nil
}

// verdict is the result of a mutation.
type verdict struct {
	by   string // the test that failed; "" if none did
	late bool   // caught by another test than those that should notice
	said []byte
	took time.Duration
}

var (
	failed   = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	running  = regexp.MustCompile(`(?m)^=== (?:RUN|CONT) +(\S+)`)
	hung     = regexp.MustCompile(`(?m)^panic: test timed out`)
	panicked = regexp.MustCompile(`(?m)^(?:panic: |fatal error: |unexpected fault)`)
)

// try puts mutation i in force and runs tests.
func (b *bench) try(ctx context.Context, i int) (v verdict, err error) {
	m := &b.all[i]
	for _, late := range []bool{false, true} {
		for _, x := range m.tests {
			tests, err := b.binary(ctx, x.pkg)
			if err != nil {
				return v, err
			}
			begun, pattern := time.Now(), x.pattern
			if late {
				pattern = "."
			}
			v.late = late
			v.by, v.said, err = b.run(ctx, tests, x.pkg, pattern, i+1)
			v.took += time.Since(begun)
			if v.by != "" || err != nil {
				return v, err
			}
		}
		if b.named {
			break
		}
	}
	return v, nil
}

// expected names the tests that should notice.
func (m *mutation) expected() string {
	var names []string
	for _, x := range m.tests {
		names = append(names, "`"+strings.ReplaceAll(x.pattern, "|", "`, `")+"`")
	}
	return strings.Join(names, ", ")
}

// run runs tests until one fails, and returns which. Random tests always get the same seed.
func (b *bench) run(ctx context.Context, tests, pkg, pattern string, number int) (by string, said []byte, err error) {
	timeout, checks := "90s", 2000
	if pattern == "." {
		timeout, checks = "4m", 300
	}
	cmd := exec.CommandContext(ctx, tests, "-test.v", "-test.failfast", "-test.timeout", timeout, "-test.run", pattern)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), "RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true", fmt.Sprintf("RAPID_CHECKS=%d", checks), fmt.Sprintf("%s=%d", turn, number))
	said, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	if err == nil {
		if bytes.Contains(said, []byte("no tests to run")) {
			return "", said, fmt.Errorf("no test in %s matches %s", pkg, pattern)
		}
		return "", said, nil
	}
	if !errors.As(err, &exit) {
		return "", said, err
	}
	last := "" // that ran
	if all := running.FindAllSubmatch(said, -1); len(all) > 0 {
		last = string(all[len(all)-1][1])
	}
	switch f := failed.FindSubmatch(said); {
	case f != nil:
		return string(f[1]), said, nil
	case hung.Match(said):
		return last + " (hangs)", said, nil
	case panicked.Match(said):
		return last + " (panics)", said, nil
	}
	return "", said, fmt.Errorf("%s: %w\n%s", pattern, err, said)
}
