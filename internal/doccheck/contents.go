// This file reads how a document is divided: its headings, its table of contents, and
// the cells of its tables.

package doccheck

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Long is the maximum length in lines of a document without a table of contents.
const Long = 60

// Heading is a line that begins with # signs.
type Heading struct {
	Level  int
	Text   string // as it is shown: without backticks, links as their text
	Anchor string // as GitHub makes it
}

var (
	heading = regexp.MustCompile(`^(#+) +(.*?) *$`)
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// Headings returns the headings of a document in order.
func (d Document) Headings() (all []Heading) {
	used := map[string]int{}
	for line := range strings.Lines(fenced.ReplaceAllString(d.Text, "")) {
		m := heading.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		text := strings.ReplaceAll(linked.ReplaceAllString(m[2], "$1"), "`", "")
		anchor := anchor(text)
		again := used[anchor]
		used[anchor]++
		if again > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, again)
		}
		all = append(all, Heading{len(m[1]), text, anchor})
	}
	return all
}

// anchor is a heading in lower case, of its letters, digits, hyphens and underscores,
// with a hyphen for each space.
func anchor(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// Contents returns the table of contents that a document should have: links to its sections in one
// line, or as a list if that line would be longer than 120 characters. It is empty if the document
// is short, or has fewer than two sections.
func (d Document) Contents() string {
	if strings.Count(d.Text, "\n") <= Long {
		return ""
	}
	var links []string
	shown := 0
	for _, h := range d.Headings() {
		if h.Level == 2 {
			links = append(links, fmt.Sprintf("[%s](#%s)", h.Text, h.Anchor))
			shown += utf8.RuneCountInString(h.Text) + 3
		}
	}
	switch {
	case len(links) < 2:
		return ""
	case shown <= 120:
		return strings.Join(links, " · ") + "\n"
	}
	return "- " + strings.Join(links, "\n- ") + "\n"
}

var toc = regexp.MustCompile(`^(- )?\[[^\]]*\]\(#[^)]*\)(( · |\n- )\[[^\]]*\]\(#[^)]*\))*\n$`)

// WithContents returns a document's text with its table of contents inserted, or replaced, after
// the first paragraph.
func (d Document) WithContents() (string, error) {
	parts := strings.SplitN(d.Text, "\n\n", 4)
	if len(parts) < 4 {
		return d.Text, nil
	}
	if !strings.HasPrefix(parts[0], "# ") {
		return "", errors.New(d.Path + " does not begin with a heading, an empty line and a paragraph")
	}
	rest := parts[2] + "\n\n" + parts[3]
	if toc.MatchString(parts[2] + "\n") {
		rest = parts[3]
	}
	if want := d.Contents(); want != "" {
		rest = want + "\n" + rest
	}
	return parts[0] + "\n\n" + parts[1] + "\n\n" + rest, nil
}

// Cell is what stands in one place of a table.
type Cell struct {
	Where string // file and line
	Words int    // a code span is one word, a link as many as its text
	Text  string
}

var bar = regexp.MustCompile(`\s*\|\s*`)

// Cells returns the cells of a document's tables in order.
func (d Document) Cells() (all []Cell) {
	inside := false
	number := 0
	for line := range strings.Lines(d.Text) {
		number++
		if strings.HasPrefix(line, "```") {
			inside = !inside
		}
		line = strings.TrimSpace(line)
		if inside || !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") {
			continue
		}
		bare := linked.ReplaceAllString(span.ReplaceAllString(line, "X"), "$1")
		bare = strings.ReplaceAll(bare, `\|`, "")
		for _, text := range bar.Split(strings.Trim(bare[1:len(bare)-1], " "), -1) {
			all = append(all, Cell{fmt.Sprintf("%s:%d", d.Path, number), len(strings.Fields(text)), text})
		}
	}
	return all
}
