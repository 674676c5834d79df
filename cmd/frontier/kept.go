// This file keeps a crawl's settings in its folder, and implements resume.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// keptConfig is a file in -dir: the options of the last crawl there, as -print-config prints them.
const keptConfig = "crawl.toml"

// pathOptions are stored as absolute paths, because resume may run in another folder.
var pathOptions = []string{"dir", "done-log", "log", "temp", "warc", "seen", "stats", "checkpoint-dir", "page-token-file", seedsFileKey}

// secretOptions may name secrets.
var secretOptions = []string{"header", "cookie", "auth", "proxy-for", "proxy"}

// keep writes the options into the crawl's folder, replacing earlier ones. Only the owner may read them:
// they may contain a password.
func (s *settings) keep() error {
	absolute := func(_, path string) (string, error) {
		if path == "" {
			return "", nil
		}
		return filepath.Abs(path)
	}
	if err := cmp.Or(s.rewrite(pathOptions, absolute), s.rewrite(secretOptions, wholePath)); err != nil {
		return err
	}
	return durablefs.WriteFile(filepath.Join(s.dir, keptConfig), 0o600, s.printConfig)
}

// rewrite changes the values of some options.
func (o *options) rewrite(names []string, change func(option, text string) (string, error)) (err error) {
	for _, name := range names {
		x := o.find(name)
		switch text := x.now.(type) {
		case string:
			x.now, err = change(name, text)
		case []string:
			for i := range text {
				if err == nil {
					text[i], err = change(name, text[i])
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyConfig copies the stored options into a copy of the crawl's folder.
func copyConfig(dir, to string) error {
	b, err := os.ReadFile(filepath.Join(dir, keptConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, keptConfig), b, 0o600)
}

// resumeCommand returns the resume command. It stores its exit status in code.
func resumeCommand(code *int) *cli.Command {
	s := newSettings()
	return &cli.Command{
		Name: "resume", Usage: "go on with the crawl in a folder, with the settings it had", ArgsUsage: "FOLDER", Flags: append(s.flags(), printFlag()),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			dirs := slices.Concat(cmd.Args().Slice(), s.find("dir").typed)
			if len(dirs) == 0 && os.Getenv("FRONTIER_DIR") != "" {
				dirs = []string{os.Getenv("FRONTIER_DIR")}
			}
			if len(dirs) != 1 {
				return usageError("resume: which crawl? Want one folder")
			}
			if err := s.readKept(dirs[0]); err != nil {
				return err
			}
			s.example = cmd.Bool("print-config")
			return s.start(ctx, cmd, code)
		},
	}
}

// readKept reads the options stored in a crawl's folder.
func (s *settings) readKept(dir string) error {
	if err := hasCrawl(dir); err != nil {
		return err
	}
	err := s.readConfig(filepath.Join(dir, keptConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return usageError(fmt.Sprintf("%s has no settings to go on with: give them to frontier crawl -dir %s", dir, dir))
	}
	s.find("dir").typed = []string{dir}
	s.resumed = true
	return err
}

// anew reports whether options whose names begin with prefix must be set in the frontier, which stores
// them. A resumed crawl has them already, or what commands set since.
func (s *settings) anew(prefix string) bool {
	return !s.resumed || slices.ContainsFunc(s.all, func(x *option) bool { return strings.HasPrefix(x.Name, prefix) && x.from == fromFlag })
}
