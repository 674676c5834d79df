// This file runs the transcripts in the documentation: blocks of commands after "$ " and their
// output.

package doccheck

import (
	"regexp"
	"strings"
)

// Step is a command of a transcript.
type Step struct {
	Command string
	Said    string // by the document
	Until   string // a condition that is waited for before it; empty: none
}

var waiting = regexp.MustCompile(`^<!-- wait: (.*) -->$`)

// Retell returns a document whose console blocks contain what say returns for each command, in
// order. A comment before a block gives a condition: a command that succeeds once the block may
// continue.
func Retell(text string, say func(Step) string) string {
	var out strings.Builder
	var step *Step
	until := ""
	inside := false
	end := func() {
		if step != nil {
			out.WriteString(say(*step))
			step = nil
		}
	}
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		command, typed := strings.CutPrefix(bare, "$ ")
		switch {
		case !inside:
			if m := waiting.FindStringSubmatch(bare); m != nil {
				until = m[1]
			}
			inside = bare == "```console"
		case bare == "```":
			end()
			inside = false
		case typed:
			end()
			step, until = &Step{Command: command, Until: until}, ""
		case step != nil:
			step.Said += line
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

// alike are the parts that differ between runs. Lines about a moment that may be over, priorities
// that depend on timing, and failures of a slow machine may be missing.
var alike = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(?m)^go: downloading .*\n`), ""}, // of a first build
	{regexp.MustCompile(`token=\w+`), "token=T"},
	{regexp.MustCompile(`"key":"[^"]*"?`), `"key":K`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z?`), "TIME"},
	{regexp.MustCompile(`[0-9]([0-9.,\x{202f}]*[0-9])?( ?(ns|µs|us|ms|min|s|m|h|d|B|kB|KiB|MB|MiB|GB|GiB)\b)?`), "N"},
	{regexp.MustCompile(`N( N)+`), "N"}, // as in 1 min 5 s
	{regexp.MustCompile(`\b(now|in N)\b`), ""},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(`(?m)^(priority N|next contact|failures in a row|slowed down to|failed: ).*\n`), ""},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// Alike returns output with numbers, times and the width of columns normalized.
func Alike(said string) string {
	for _, a := range alike {
		said = a.what.ReplaceAllString(said, a.as)
	}
	return said
}
