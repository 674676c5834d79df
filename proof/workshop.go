// This file runs rounds of tests, and adds up their counts.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
)

// workshop runs tests, each package's from one binary.
type workshop struct {
	race     bool
	out      io.Writer
	root     string            // of the module
	dir      string            // of binaries
	binaries map[string]string // by package
}

func newWorkshop(race bool, out io.Writer) (*workshop, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	path := strings.TrimSpace(string(mod))
	if filepath.Base(path) != "go.mod" {
		return nil, errors.New("run it inside the module")
	}
	dir, err := os.MkdirTemp("", "frontier-proof-")
	if err != nil {
		return nil, err
	}
	return &workshop{race: race, out: out, root: filepath.Dir(path), dir: dir, binaries: map[string]string{}}, nil
}

func (w *workshop) close() { _ = os.RemoveAll(w.dir) }

// binary builds the tests of a package, once.
func (w *workshop) binary(ctx context.Context, pkg string) (string, error) {
	if b, ok := w.binaries[pkg]; ok {
		return b, nil
	}
	b := filepath.Join(w.dir, fmt.Sprintf("tests%d", len(w.binaries)))
	args := []string{"test", "-c", "-o", b}
	if w.race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = w.root
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, said)
	}
	w.binaries[pkg] = b
	return b, nil
}

// result is the result of the rounds of a kind.
type result struct {
	kind
	first, all trycount.Count // of the first round, which is CI's, and of all
	rounds     int
	took       time.Duration
	failed     []uint64 // seeds
}

// runAll runs one round of each kind and, in a long run, further rounds of the
// kind that is furthest behind its share, until the time is over.
func (w *workshop) runAll(ctx context.Context, s settings) error {
	begun := time.Now()
	fmt.Fprintf(w.out, "go run ./proof -seed %d\n", s.seed)
	seeds := rand.New(rand.NewPCG(s.seed, 0))
	results := make([]*result, len(s.kinds))
	for i, k := range s.kinds {
		results[i] = &result{kind: k}
		if err := w.round(ctx, results[i], k.ci, seeds.Uint64N(1<<32)+1); err != nil {
			return err
		}
	}
	for time.Since(begun) < s.long && ctx.Err() == nil {
		var next *result
		for _, r := range results {
			if r.seed == "" && r.rounds > 1 {
				continue
			}
			if next == nil || r.took/time.Duration(max(1, r.share)) < next.took/time.Duration(max(1, next.share)) {
				next = r
			}
		}
		if next == nil {
			break
		}
		if err := w.round(ctx, next, next.long, seeds.Uint64N(1<<32)+1); err != nil {
			return err
		}
	}
	table(w.out, results, s.long > 0, time.Since(begun))
	failed := 0
	for _, r := range results {
		failed += len(r.failed)
	}
	if failed > 0 {
		return fmt.Errorf("%d rounds failed", failed)
	}
	return ctx.Err()
}

// round runs a kind's tests once.
func (w *workshop) round(ctx context.Context, r *result, flags []string, seed uint64) error {
	begun := time.Now()
	output, err := w.tests(ctx, r.kind, flags, seed)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil // it was stopped, and shows nothing
	case err != nil && !errors.As(err, &exit):
		return err
	}
	took := time.Since(begun)
	n := trycount.Parse(output)
	if err != nil && n.Faults() == 0 {
		n.Violations = 1 // it ended before it could report
	}
	if err == nil && n.Tried == 0 {
		return fmt.Errorf("%s: tried nothing; do its tests count with package trycount?\n%s", r.name, output)
	}
	if r.rounds == 0 {
		r.first = n
	}
	r.all.Add(n)
	r.rounds++
	r.took += took
	fmt.Fprintf(w.out, "%-14s %8d tried in %5.1f s, seed %d\n", r.name, n.Tried, took.Seconds(), seed)
	if err != nil {
		r.failed = append(r.failed, seed)
		fmt.Fprintf(w.out, "%s\n%s FAILED: %v\nagain: go run ./proof -replay %s %d\n", tail(output, 16<<10), r.name, n, r.name, seed)
	}
	return nil
}

func tail(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	b = b[len(b)-n:]
	return append([]byte("...\n"), b[bytes.IndexByte(b, '\n')+1:]...)
}

// tests runs a kind's tests and returns their output.
func (w *workshop) tests(ctx context.Context, k kind, flags []string, seed uint64) ([]byte, error) {
	if k.program != "" {
		cmd := exec.CommandContext(ctx, "go", append([]string{"run", k.program}, flags...)...)
		cmd.Dir = w.root
		return cmd.CombinedOutput()
	}
	b, err := w.binary(ctx, k.pkg)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-test.v", "-test.run", k.run, "-test.timeout", "20m"}, flags...)
	if k.seed != "" {
		args = append(args, "-"+k.seed+"="+strconv.FormatUint(seed, 10))
	}
	cmd := exec.CommandContext(ctx, b, args...)
	cmd.Dir = filepath.Join(w.root, k.pkg)
	return cmd.CombinedOutput()
}

// replay repeats a long round of a kind, and prints the output of its tests.
func (w *workshop) replay(ctx context.Context, k kind, seed uint64) error {
	output, err := w.tests(ctx, k, k.long, seed)
	_, _ = w.out.Write(output)
	if err != nil {
		return fmt.Errorf("%s with seed %d: %w", k.name, seed, err)
	}
	return nil
}

// table prints what was tried, in the form of the docs.
func table(out io.Writer, results []*result, long bool, took time.Duration) {
	fmt.Fprintf(out, "\nafter %v:\n\n", took.Round(time.Second))
	fmt.Fprintln(out, "| kind | a try is | tried in CI | tried in a long run | lost | duplicated | violations |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	for _, r := range results {
		more := "-"
		if long {
			more = strconv.FormatInt(r.all.Tried, 10)
		}
		fmt.Fprintf(out, "| `%s` | %s | %d | %s | %d | %d | %d |\n",
			r.name, r.what, r.first.Tried, more, r.all.Lost, r.all.Duplicated, r.all.Violations)
	}
}
