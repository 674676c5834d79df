// Command typed runs the commands in README.md and docs/*.md as docs/commands.md defines, and types
// their transcripts; frontier is the command of this checkout. Run it in the module's root.
//
//	go run ./internal/doccheck/typed [-update] [-share N] [-turn N] [REGEXP]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/doccheck"
)

// limit is the timeout of a share. It is generous because CI machines are slow.
const limit = 10 * time.Minute

func main() {
	log.SetFlags(0)
	update := flag.Bool("update", false, "write what the commands of transcripts print into the documents")
	share := flag.Int("share", 1, "type one in `N` of the commands that begin with go and need no other's files")
	turn := flag.Int("turn", 0, "the `number` of the run: the next one types others")
	flag.Parse()
	only, err := regexp.Compile(flag.Arg(0))
	if err == nil {
		err = run(os.Stdout, only, *update, max(1, *share), *turn)
	}
	if err != nil {
		log.Fatal("typed: ", err)
	}
}

// run runs the matching commands, and the transcripts of the documents whose paths match, all of
// them even if some fail. Of the commands that need no others it runs one in share.
func run(out io.Writer, only *regexp.Regexp, update bool, share, turn int) (err error) {
	docs, err := doccheck.Documents(".")
	if err != nil {
		return err
	}
	plan, err := doccheck.Plan(docs)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "typed")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	before, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	if text, err := shell(tmp, "go build -o $tmp/bin/frontier ./cmd/frontier"); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	var errs []error
	ran := map[string]bool{}
	for _, s := range plan {
		if s.Run == "" || ran[s.Run] || !only.MatchString(s.Run) {
			continue
		}
		ran[s.Run] = true
		if strings.HasPrefix(s.Run, "go ") && !strings.Contains(s.Run, "$tmp") {
			if turn++; turn%share != 0 {
				continue
			}
		}
		begun := time.Now()
		text, err := shell(tmp, s.Run)
		fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(begun).Seconds(), s.Run)
		if err != nil {
			fmt.Fprintf(out, "%s\n%v\n", text[max(0, len(text)-4000):], err)
			errs = append(errs, fmt.Errorf("`%s`: %w", s.Run, err))
		}
	}
	for _, d := range docs {
		if only.MatchString(d.Path) {
			begun := time.Now()
			commands, err := transcript(tmp, d, update)
			if commands > 0 {
				fmt.Fprintf(out, "%6.1f s  the transcript of %s, %d commands\n", time.Since(begun).Seconds(), d.Path, commands)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("the transcript of %s: %w", d.Path, err))
			}
		}
	}
	after, err := os.ReadDir(".")
	if err == nil && len(after) != len(before) {
		err = errors.New("a command left a file here; $tmp is the place for it")
	}
	return errors.Join(append(errs, err)...)
}

// shell runs a line, in which $tmp is a folder, and returns its output.
func shell(tmp, line string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.Env = append(os.Environ(), "tmp="+tmp, "PATH="+filepath.Join(tmp, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("still running after %v", limit)
	}
	return string(out), err
}
