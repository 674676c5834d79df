// This file checks how documents are divided: their tables of contents, the sections
// that links name, and the cells of their tables.

package doccheck

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages are all documents, including those whose commands are not run.
func pages(t *testing.T) []Document {
	t.Helper()
	all := documents(t)
	for _, name := range []string{"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		all = append(all, Document{name, string(text)})
	}
	return all
}

func TestLongPagesHaveContents(t *testing.T) {
	for _, d := range documents(t) {
		if !strings.HasPrefix(d.Path, "docs/") {
			continue
		}
		want, err := d.WithContents()
		require.NoError(t, err)
		if *update && want != d.Text {
			require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(d.Path)), []byte(want), 0o644))
			continue
		}
		assert.Equal(t, want, d.Text, "%s: write it with: go test -run Contents ./internal/doccheck -frontier.update", d.Path)
	}
}

// TestLinksLeadSomewhere looks up the files that documents link to, and their sections.
func TestLinksLeadSomewhere(t *testing.T) {
	anchors := map[string]map[string]bool{}
	all := pages(t)
	for _, d := range all {
		anchors[d.Path] = map[string]bool{}
		for _, h := range d.Headings() {
			anchors[d.Path][h.Anchor] = true
		}
	}
	sections := 0
	for _, d := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(d.Text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, section, _ := strings.Cut(m[1], "#")
			file := d.Path
			if target != "" {
				file = path.Join(path.Dir(d.Path), target)
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
				assert.NoError(t, err, "%s links to %s", d.Path, m[1])
			}
			if section != "" {
				sections++
				assert.True(t, anchors[file][section], "%s links to %s: there is no such heading", d.Path, m[1])
			}
		}
	}
	assert.Greater(t, sections, 50)
}

// mostWords is how many words a cell of a table may have.
const mostWords = 15

// usages are the tables of docs/configuration.md. Their cells are what -h says of flags.
var usages = regexp.MustCompile(`(?s)<!-- schema[^>]*-->\n.*?<!-- end of the schema[^>]*-->`)

func TestCellsAreShort(t *testing.T) {
	for _, d := range pages(t) {
		if d.Path == "docs/configuration.md" {
			d.Text = usages.ReplaceAllStringFunc(d.Text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
		}
		for _, c := range d.Cells() {
			assert.LessOrEqual(t, c.Words, mostWords, "%s: shorten it, or move a part of it below the table: %s", c.Where, c.Text)
		}
	}
}

func TestHeadingsAndContents(t *testing.T) {
	body := strings.Repeat("a line\n", Long)
	d := Document{"a.md", "# A\n\nWhat it is.\n\n## One, `two` & [three](b.md)\n\n```\n## none\n```\n\n### Deep\n\n## Über_x-1\n\n## Deep\n" + body}
	assert.Equal(t, []Heading{
		{1, "A", "a"}, {2, "One, two & three", "one-two--three"}, {3, "Deep", "deep"}, {2, "Über_x-1", "über_x-1"}, {2, "Deep", "deep-1"},
	}, d.Headings())
	line := "[One, two & three](#one-two--three) · [Über_x-1](#über_x-1) · [Deep](#deep-1)\n"
	assert.Equal(t, line, d.Contents())

	with, err := d.WithContents()
	require.NoError(t, err)
	assert.Contains(t, with, "What it is.\n\n"+line+"\n## One")
	again, err := Document{"a.md", with}.WithContents()
	require.NoError(t, err)
	assert.Equal(t, with, again)
	renamed, err := Document{"a.md", strings.Replace(with, "## Über_x-1", "## Another", 1)}.WithContents()
	require.NoError(t, err)
	assert.Contains(t, renamed, "What it is.\n\n[One, two & three](#one-two--three) · [Another](#another) · [Deep](#deep-1)\n\n## One")

	long, err := Document{"a.md", with + "## " + strings.Repeat("very ", 20) + "long\n"}.WithContents()
	require.NoError(t, err)
	assert.Contains(t, long, "What it is.\n\n- [One, two & three](#one-two--three)\n- [Über_x-1](#über_x-1)\n- ")
	short, err := Document{"a.md", strings.TrimSuffix(with, body)}.WithContents()
	require.NoError(t, err)
	assert.NotContains(t, short, "](#")

	_, err = Document{"a.md", strings.TrimPrefix(d.Text, "# A\n\n")}.WithContents()
	assert.ErrorContains(t, err, "a.md")
}

func TestCells(t *testing.T) {
	d := Document{"a.md", "| a | b c |\n|---|---|\n| `x | y z` and [one two](b.md#c) | \\| |\n\n```\n| no | cell |\n```\n"}
	var words []int
	for _, c := range d.Cells() {
		words = append(words, c.Words)
	}
	assert.Equal(t, []int{1, 2, 1, 1, 4, 0}, words)
	assert.Equal(t, "a.md:3", d.Cells()[4].Where)
}
