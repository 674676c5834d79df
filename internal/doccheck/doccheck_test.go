// This file checks the documentation: its code, its commands, and its links.

package doccheck

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("frontier.update", false, "write what documents have of the code and of commands")

func documents(t *testing.T) []Document {
	t.Helper()
	docs, err := Documents(root)
	require.NoError(t, err)
	require.Greater(t, len(docs), 5)
	return docs
}

// TestCodeOfTheDocumentation looks each fragment up in the file that it comes
// from, which is built and tested like any other.
func TestCodeOfTheDocumentation(t *testing.T) {
	fragments := 0
	for _, d := range documents(t) {
		blocks, err := d.Blocks()
		require.NoError(t, err)
		for _, b := range blocks {
			switch {
			case b.Key == "code":
				fragments++
				assert.True(t, within(t, b), "%s: this is not in %s:\n%s", b.Where, b.Value, b.Text)
			case b.Lang == "go":
				t.Errorf("%s: a fragment without the comment <!-- code: PATH --> on the line before", b.Where)
			}
		}
	}
	assert.Positive(t, fragments)
}

// within reports whether the lines of a block follow each other in the file that
// it comes from, with any indentation before all of them.
func within(t *testing.T, b Block) bool {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.Value)))
	require.NoError(t, err, b.Where)
	lines, want := strings.Split(string(file), "\n"), strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n")
	for i := range lines {
		if at, found := strings.CutSuffix(lines[i], want[0]); found && strings.Trim(at, "\t") == "" && follow(lines[i:], want, at) {
			return true
		}
	}
	return false
}

// follow reports whether lines begin with those wanted, each indented by indent.
func follow(lines, want []string, indent string) bool {
	if len(lines) < len(want) {
		return false
	}
	for i, w := range want {
		if w != "" {
			w = indent + w
		}
		if lines[i] != w {
			return false
		}
	}
	return true
}

// TestEveryCommandIsRun makes sure that the steps exist that are said to run
// commands, and that shares are of the same program.
func TestEveryCommandIsRun(t *testing.T) {
	plan, err := Plan(documents(t))
	require.NoError(t, err)
	require.Greater(t, len(plan), 30)
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	require.NoError(t, err)
	for _, s := range plan {
		assert.NotRegexp(t, `^go test .*-frontier\..* \./`, s.Written, "behind a flag of the tests a package is an argument, and nothing runs")
		switch {
		case s.Step != "":
			assert.Regexp(t, `(?m)^`+s.Step+`\(\) \{`, string(ci), "the step that runs `%s`", s.Written)
			assert.Regexp(t, `(?m)^all=\(.*\b`+s.Step+`\b.*\)$`, string(ci), "the step that runs `%s`", s.Written)
		case s.Run != s.Written:
			assert.NotRegexp(t, `[A-Z]{4}|\[`, s.Run, "a placeholder is left in the share of `%s`", s.Written)
		default:
			assert.NotRegexp(t, `\[|[^-\w/.=][A-Z]{3,}\b`, s.Written, "%s must tell what to put there", Page)
			assert.NotRegexp(t, `[ =][1-9]\d*[mh]\b`, s.Written, "%s needs a share of what runs for minutes", Page)
		}
	}
}

var (
	claim  = regexp.MustCompile(`(?m)^- \*\*\w+\.\*\* .*$`)
	source = regexp.MustCompile(`\]\((docs/\w+\.md)#([\w-]+)\)`)
	figure = regexp.MustCompile(`\.?[0-9][0-9.,]*[0-9]|[0-9]`)
)

// TestClaimsHaveTheirFigures makes sure that each claim of README.md links to a section that has all
// of its figures, and the command that measures them.
func TestClaimsHaveTheirFigures(t *testing.T) {
	docs := documents(t)
	claims := claim.FindAllString(docs[0].Text, -1)
	require.NotEmpty(t, claims)
	for _, c := range claims {
		m := source.FindStringSubmatch(c)
		require.NotNil(t, m, "no section has the figures of: %s", c)
		i := slices.IndexFunc(docs, func(d Document) bool { return d.Path == m[1] })
		require.GreaterOrEqual(t, i, 0, m[1])
		section := docs[i].section(m[2])
		for _, n := range figure.FindAllString(source.ReplaceAllString(c, ""), -1) {
			assert.Contains(t, figure.FindAllString(section.Text, -1), n, "%s#%s has no such figure: %s", m[1], m[2], c)
		}
		commands, err := section.Commands()
		require.NoError(t, err)
		assert.NotEmpty(t, commands, "%s#%s has no command for: %s", m[1], m[2], c)
	}
}

// section returns the part of a document below a heading.
func (d Document) section(anchor string) Document {
	headings := d.Headings()
	i := slices.IndexFunc(headings, func(h Heading) bool { return h.Anchor == anchor })
	if i < 0 {
		return Document{}
	}
	_, text, _ := strings.Cut(d.Text, "\n"+strings.Repeat("#", headings[i].Level)+" "+headings[i].Text+"\n")
	if i+1 < len(headings) {
		text, _, _ = strings.Cut(text, "\n"+strings.Repeat("#", headings[i+1].Level)+" "+headings[i+1].Text+"\n")
	}
	return Document{d.Path, text}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

var testFile = regexp.MustCompile("`([\\w/]+_test\\.go)`")

// TestNamedTestsExist looks up the test files that documents name.
func TestNamedTestsExist(t *testing.T) {
	named := 0
	for _, d := range documents(t) {
		for _, m := range testFile.FindAllStringSubmatch(d.Text, -1) {
			named++
			assert.FileExists(t, filepath.Join(root, filepath.FromSlash(m[1])), d.Path)
		}
	}
	assert.Positive(t, named)
}

func TestBlocksAndCommands(t *testing.T) {
	d := Document{"a.md", "Type `go run\n./a`, or:\n\n    go test ./... # all\n    not a command\n\n" +
		"<!-- code: b.go -->\n```go\ngo run ./no\n```\n\n```\ngo vet ./...   # why\n```\n\n- a list\n    go run ./no\n"}
	blocks, err := d.Blocks()
	require.NoError(t, err)
	require.Len(t, blocks, 3)
	assert.Equal(t, Block{"a.md:9", "go", "code", "b.go", "go run ./no\n"}, blocks[1])
	commands, err := d.Commands()
	require.NoError(t, err)
	assert.Equal(t, []string{"go test ./...", "go vet ./...", "go run ./a"}, commands)

	_, err = Document{"a.md", "```go\n"}.Blocks()
	assert.ErrorContains(t, err, "a.md:2")

	page := Document{Page, "| `go vet ./...` | `go vet ./a \\| b` |\n| `go test ./...` | step `tests` |\n| `go run ./gone` | `go run ./b` |\n"}
	plan, err := Plan([]Document{d, page})
	assert.ErrorContains(t, err, "no document has `go run ./gone`")
	assert.Equal(t, []Share{
		{Written: "go test ./...", Step: "tests"},
		{Written: "go vet ./...", Run: "go vet ./a | b"},
		{Written: "go run ./a", Run: "go run ./a"},
	}, plan)
	_, err = Shares("| `a` | b |\n")
	assert.ErrorContains(t, err, "neither")
	_, err = Shares("")
	assert.Error(t, err)
}
