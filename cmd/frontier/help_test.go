// This file tests what the command says about itself.

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"
)

// typing runs a command line.
func typing(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

// Each example is a line of a command that exists, with flags that exist, and each command
// has one.
func TestExamplesCanBeTyped(t *testing.T) {
	root := newRoot(new(int))
	for name, lines := range examples {
		for _, line := range lines {
			words := strings.Fields(line)
			i := slices.Index(words, "frontier")
			require.GreaterOrEqual(t, i, 0, line)
			require.Equal(t, name, words[i+1], line)
			c := root.Command(name)
			require.NotNil(t, c, line)
			for _, w := range words[i+2:] {
				if flag, ok := strings.CutPrefix(w, "-"); ok {
					assert.True(t, slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), flag) }), line)
				}
			}
		}
	}
	for _, c := range shownCommands(root) {
		assert.NotEmpty(t, examples[c.Name], c.Name)
	}
}

func TestHelpIsShortUnlessAllIsAskedFor(t *testing.T) {
	for _, short := range [][]string{{"crawl", "-h"}, {"help", "crawl"}, {"crawl", "-help"}} {
		status, out, _ := typing(t, short...)
		assert.Zero(t, status)
		assert.Less(t, strings.Count(out, "\n"), 50, short)
		assert.Contains(t, out, "frontier crawl -dir state -contact")
		assert.NotContains(t, out, "-delay-factor float")
	}
	for _, all := range [][]string{{"crawl", "-h", "all"}, {"help", "crawl", "all"}} {
		status, out, _ := typing(t, all...)
		assert.Zero(t, status)
		for _, x := range newSettings().all {
			if x.Name != seedsKey {
				assert.Contains(t, out, "\n  -"+x.Name)
			}
		}
		assert.Less(t, strings.Index(out, "  -min-delay"), strings.Index(out, "  -max-delay"), "in the order in which they are explained")
		assert.Less(t, strings.Index(out, "\nThe crawl:"), strings.Index(out, "\nCopies:"))
	}
	for _, name := range everyday {
		assert.True(t, newSettings().find(name) != nil || name == "config", name)
	}
}

func TestCommandsAreListedInTheOrderOfUse(t *testing.T) {
	_, out, _ := typing(t, "help")
	for _, pair := range [][2]string{{"\n  crawl ", "\n  status "}, {"\n  status ", "\n  pause "}, {"\n  pause ", "\n  export "}, {"\n  export ", "\n  version "}, {"\n  version ", "\n  completion "}} {
		before, after := strings.Index(out, pair[0]), strings.Index(out, pair[1])
		assert.Less(t, 0, before, pair[0])
		assert.Less(t, before, after, pair)
	}
}

func TestMistypedNamesAreCorrected(t *testing.T) {
	for _, x := range []struct {
		line, want string
	}{
		{"crwal -dir x", `there is no command "crwal"; did you mean "crawl"?`},
		{"complection", `did you mean "completion"?`},
		{"fly", "there is no command \"fly\"\n"},
		{"help fly", "there is no command \"fly\"\n"},
		{"crawl -dri x", `crawl: there is no flag -dri; did you mean "-dir"?`},
		{"crawl --max-page 5", `crawl: there is no flag -max-page; did you mean "-max-pages"?`},
		{"crawl -zzzzzzzz", "crawl: there is no flag -zzzzzzzz\n"},
		{"hosts -dri x", `did you mean "-dir"?`},
		{"hosts -n x", `hosts: -n is "x"; want an integer`},
		{"block -for x *", `block: -for is "x"; want a time as in`},
		{"block -until x *", `block: -until is "x"; want a moment as in`},
		{"crawl -dir", "crawl: -dir needs a value"},
		{"", "which command? To begin: frontier crawl"},
		{"-x", "there is no flag -x"},
	} {
		status, out, stderr := typing(t, strings.Fields(x.line)...)
		assert.Equal(t, exitUsage, status, x.line)
		assert.Empty(t, out, x.line)
		assert.Contains(t, stderr, x.want, x.line)
	}
	assert.Equal(t, []int{0, 1, 1, 1, 1, 3}, []int{distance("dir", "dir"), distance("dri", "dir"), distance("di", "dir"), distance("dirs", "dir"), distance("dim", "dir"), distance("dir", "")})
}

func TestVersion(t *testing.T) {
	for _, line := range []string{"version", "-version", "--version"} {
		status, out, _ := typing(t, line)
		assert.Zero(t, status)
		assert.Regexp(t, `^frontier \S+, go\S+ \w+/\w+\n$`, out, line)
	}
	status, _, _ := typing(t, "version", "x")
	assert.Equal(t, exitUsage, status)
}

// The manual has each command and each flag, and roff finds nothing wrong in it.
func TestManualIsInStepWithTheCommand(t *testing.T) {
	status, page, _ := typing(t, "man")
	assert.Zero(t, status)
	for _, c := range shownCommands(newRoot(new(int))) {
		_, part, ok := strings.Cut(page, "\n.SS "+roff(c.Name)+"\n")
		require.True(t, ok, c.Name)
		part, _, _ = strings.Cut(part, "\n.SS ")
		for _, f := range c.Flags {
			assert.Contains(t, part, "\n.B "+roff("-"+f.Names()[0]), c.Name)
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, ".") {
			assert.Regexp(t, `^\.(TH|SH|SS|TP|PP|B|nf|fi)\b`, line)
		}
		assert.False(t, strings.HasPrefix(line, "'"), line)
	}
	assert.Equal(t, `\&.a\e\-b`+"\n"+`\&'c`, roff(".a\\-b\n'c"))
}
