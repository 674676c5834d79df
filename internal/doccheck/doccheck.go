// Package doccheck reads the module's documentation. Tests use it to build the code in the
// documentation and compare it with the programs that it comes from; command typed uses it to run
// the documented commands: docs/commands.md has the conventions.
package doccheck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Document is a Markdown file.
type Document struct {
	Path string // from the module's root
	Text string
}

// Documents reads README.md and docs/*.md below the module's root.
func Documents(root string) ([]Document, error) {
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	var all []Document
	for _, p := range append([]string{filepath.Join(root, "README.md")}, paths...) {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return nil, err
		}
		all = append(all, Document{filepath.ToSlash(rel), string(text)})
	}
	return all, nil
}

// Block is a fenced or indented block of a document.
type Block struct {
	Where string // file and line of its first line
	Lang  string // behind the fence
	Key   string // of the comment on the line before: code or with
	Value string // of that comment: a path
	Text  string
}

var note = regexp.MustCompile(`^<!-- (code|with): (\S+) -->$`)

// Blocks returns the blocks of a document in order.
func (d Document) Blocks() (blocks []Block, err error) {
	lines := strings.Split(d.Text, "\n")
	for i := 0; i < len(lines); i++ {
		b := Block{Where: fmt.Sprintf("%s:%d", d.Path, i+2)}
		switch {
		case strings.HasPrefix(lines[i], "```"):
			b.Lang = strings.TrimPrefix(lines[i], "```")
			if i > 0 {
				if m := note.FindStringSubmatch(lines[i-1]); m != nil {
					b.Key, b.Value = m[1], m[2]
				}
			}
			end := slices.Index(lines[i+1:], "```")
			if end < 0 {
				return nil, fmt.Errorf("%s: no end of the block", b.Where)
			}
			b.Text = strings.Join(lines[i+1:i+1+end], "\n") + "\n"
			i += 1 + end
		case strings.HasPrefix(lines[i], "    ") && (i == 0 || strings.TrimSpace(lines[i-1]) == ""):
			b.Where = fmt.Sprintf("%s:%d", d.Path, i+1)
			for ; i < len(lines) && strings.HasPrefix(lines[i], "    "); i++ {
				b.Text += lines[i][4:] + "\n"
			}
		default:
			continue
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// command matches the beginning of a command to type: a program that the documentation runs.
var command = regexp.MustCompile(`^(go|bash|git|curl|docker|\.ci/run|bench/compare|crawler/realweb/run|crawler/differ/run) \S|^frontier \S+ \S|^\./|^(bash )?\.ci/run$`)

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	indented = regexp.MustCompile(`(?m)^    .*$`)
	span     = regexp.MustCompile("`([^`]+)`")
	aside    = regexp.MustCompile(`\s+# .*$`)
)

// Commands returns the commands that a document asks the reader to type, each once: lines of
// blocks without a language, and code in the text. What follows " # " is a comment.
func (d Document) Commands() (all []string, err error) {
	add := func(s string) {
		s = aside.ReplaceAllString(strings.TrimSpace(s), "")
		if s = strings.Join(strings.Fields(s), " "); command.MatchString(s) && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	blocks, err := d.Blocks()
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if b.Lang == "" || b.Lang == "sh" {
			for line := range strings.Lines(b.Text) {
				add(line)
			}
		}
	}
	text := indented.ReplaceAllString(fenced.ReplaceAllString(d.Text, ""), "")
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		add(m[1])
	}
	return all, nil
}

// Page is the document that defines how commands are run.
const Page = "docs/commands.md"

// Share is a tested form of a command: a row of the table in Page.
type Share struct {
	Written string // in the documentation
	Run     string // instead; or empty
	Step    string // of .ci/run, that runs it
}

var (
	row  = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")
	step = regexp.MustCompile("^step `([a-z]+)`$")
)

// Shares reads the table of Page.
func Shares(page string) (all []Share, err error) {
	var errs []error
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		s := Share{Written: unescape(m[1])}
		if st := step.FindStringSubmatch(m[2]); st != nil {
			s.Step = st[1]
		} else if r := span.FindStringSubmatch(m[2]); r != nil && r[0] == m[2] {
			s.Run = unescape(r[1])
		} else {
			errs = append(errs, fmt.Errorf("%s: %q is neither a command nor a step", Page, m[2]))
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		errs = append(errs, fmt.Errorf("%s has no table of commands", Page))
	}
	return all, errors.Join(errs...)
}

// unescape reverts the escaping of | as \| in a table.
func unescape(s string) string { return strings.ReplaceAll(s, `\|`, "|") }

// Plan returns what to run for the commands of all documents, each once. Shares without a command
// in a document are errors.
func Plan(docs []Document) (plan []Share, err error) {
	var errs []error
	var shares []Share
	for _, d := range docs {
		if d.Path == Page {
			shares, err = Shares(d.Text)
			errs = append(errs, err)
		}
	}
	used := map[string]bool{}
	for _, d := range docs {
		if d.Path == Page {
			continue
		}
		commands, err := d.Commands()
		errs = append(errs, err)
		for _, c := range commands {
			if used[c] {
				continue
			}
			used[c] = true
			i := slices.IndexFunc(shares, func(s Share) bool { return s.Written == c })
			if i < 0 {
				plan = append(plan, Share{Written: c, Run: c})
			} else {
				plan = append(plan, shares[i])
			}
		}
	}
	for _, s := range shares {
		if !used[s.Written] {
			errs = append(errs, fmt.Errorf("%s: no document has `%s`", Page, s.Written))
		}
	}
	return plan, errors.Join(errs...)
}
