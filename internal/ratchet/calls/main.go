// Calls prints how many files of the root package execute in one plain Add, Next and Done, in
// memory and without options, and which:
//
//	go run -cover -covermode=atomic -coverpkg=github.com/seed-7440039f/frontier,./internal/ratchet/calls ./internal/ratchet/calls
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
)

func main() {
	log.SetFlags(0)
	if err := calls(context.Background()); err != nil {
		log.Fatal("calls: ", err)
	}
}

func calls(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "calls")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for i := range 50 {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%7, i)}); err != nil {
			return err
		}
	}
	var l frontier.Lease
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"Add", func() error { _, err := f.Add(ctx, frontier.Entry{URL: "http://new.example/"}); return err }},
		{"Next", func() (err error) { l, err = f.Next(ctx); return err }},
		{"Done", func() error { return f.Done(l, frontier.Outcome{}) }},
	} {
		files, err := executed(filepath.Join(dir, c.name), c.do)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("a plain %s: %s\n", c.name, strings.Join(files, " "))
	}
	return nil
}

// executed returns the names of the root's files that execute in a call.
func executed(dir string, do func() error) ([]string, error) {
	time.Sleep(150 * time.Millisecond) // what goes on in the background ends
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	err := errors.Join(coverage.WriteMetaDir(dir), coverage.ClearCounters())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(do(), coverage.WriteCountersDir(dir)); err != nil {
		return nil, err
	}
	text := filepath.Join(dir, "blocks.txt")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+text).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go tool covdata: %w: %s", err, out)
	}
	blocks, err := os.ReadFile(text)
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for line := range strings.Lines(string(blocks)) {
		file, rest, _ := strings.Cut(line, ":")
		if path.Dir(file) == "github.com/seed-7440039f/frontier" && !strings.HasSuffix(rest, " 0\n") {
			files[path.Base(file)] = true
		}
	}
	return slices.Sorted(maps.Keys(files)), nil
}
