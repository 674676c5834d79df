// This file reads a crawl's configuration file: TOML, with each option's flag name as its key. It reads
// the whole file, so that all faults are reported together, each with its line.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxConfig is the largest configuration file, in bytes.
const maxConfig = 1 << 20

// readConfig reads a configuration file into the options.
func (o *options) readConfig(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return err
	}
	if len(b) > maxConfig {
		return fmt.Errorf("%s is too large for a configuration: over 1 MiB", path)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff")) // some editors begin a file with it
	r := configReader{o: o, data: b, faulty: map[int]bool{}}
	o.file = path
	r.read()
	return nil
}

// configReader parses a file.
type configReader struct {
	o      *options
	data   []byte
	p      unstable.Parser
	faulty map[int]bool // lines that are not TOML
}

// keyed matches a line with a key or a table, where parsing resumes after a syntax error.
var keyed = regexp.MustCompile(`^[ \t]*([A-Za-z0-9_-]+[ \t]*=|\[)`)

func (r *configReader) read() {
	if at := invalid(r.data); at >= 0 {
		r.bad(r.line(at), errors.New("this is no UTF-8"))
		return
	}
	for from := 0; from < len(r.data); {
		r.p.Reset(r.data[from:])
		for r.p.NextExpression() {
			r.expression(r.p.Expression(), from)
		}
		wrong, ok := errors.AsType[*unstable.ParserError](r.p.Error())
		if !ok {
			return
		}
		from = r.resume(from, from+int(r.p.Range(wrong.Highlight).Offset), wrong)
	}
}

// resume reports a syntax error, and returns where to continue: at this line if it is whole and the error
// began before it, otherwise at the next one.
func (r *configReader) resume(from, at int, wrong *unstable.ParserError) int {
	at = min(at, len(r.data))
	begin := 1 + bytes.LastIndexByte(r.data[:at], '\n')
	if line := r.line(at); !r.faulty[line] {
		r.faulty[line] = true
		r.bad(line, errors.New(wrong.Message))
	}
	if begin > from && keyed.Match(r.data[begin:]) {
		return begin
	}
	if n := bytes.IndexByte(r.data[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(r.data)
}

// expression parses one expression. Keys in a table are parsed as if outside it, so that the unknown
// table and its other faults are reported together.
func (r *configReader) expression(e *unstable.Node, from int) {
	var names []string
	line := 0
	for it := e.Key(); it.Next(); {
		if len(names) == 0 {
			line = r.line(from + int(it.Node().Raw.Offset))
		}
		names = append(names, string(it.Node().Data))
	}
	name := strings.Join(names, ".")
	if e.Kind != unstable.KeyValue {
		r.bad(line, fmt.Errorf("there is no table %q", name))
		return
	}
	x := r.o.find(name)
	switch {
	case x == nil || len(names) > 1:
		r.bad(line, fmt.Errorf("there is no option %q%s", name, r.o.like(name)))
	case x.line > 0:
		r.bad(line, fmt.Errorf("%s is in line %d already", name, x.line))
	default:
		x.line = line
		r.value(x, e.Value(), from)
	}
}

// value sets an option.
func (r *configReader) value(x *option, v *unstable.Node, from int) {
	if x.kind() != several {
		s, err := scalar(x.kind(), v)
		if err != nil {
			r.bad(x.line, fmt.Errorf("%s: %w", x.Name, err))
			return
		}
		x.read = []text{{s, x.line}}
		return
	}
	if v.Kind != unstable.Array {
		r.bad(x.line, fmt.Errorf("%s: want a list of texts, as in [\"a\", \"b\"]", x.Name))
		return
	}
	x.read = []text{}
	for it := v.Children(); it.Next(); {
		n, line := it.Node(), x.line
		if n.Kind == unstable.Comment {
			continue
		}
		if n.Raw.Length > 0 {
			line = r.line(from + int(n.Raw.Offset))
		}
		if n.Kind != unstable.String {
			r.bad(line, fmt.Errorf("%s: want a list of texts; this is %s", x.Name, kindOf(n)))
			continue
		}
		x.read = append(x.read, text{string(n.Data), line})
	}
}

// scalar converts a value to a flag's text.
func scalar(k *kind, v *unstable.Node) (string, error) {
	s := string(v.Data)
	digits := strings.ReplaceAll(s, "_", "")
	switch {
	case k == boolean && v.Kind == unstable.Bool:
		return s, nil
	case v.Kind == unstable.Float && (k == number || k == share):
		return digits, nil
	case v.Kind == unstable.Integer && (k == integer || k == number || k == size || k == share):
		n, err := strconv.ParseInt(s, 0, 64)
		if err != nil {
			n, err = strconv.ParseInt(digits, 10, 64)
		}
		if err != nil {
			return "", fmt.Errorf("%s is no integer of 64 bits", s)
		}
		return strconv.FormatInt(n, 10), nil
	case v.Kind == unstable.String && (k == single || k == duration || k == size || k == share):
		return s, nil
	case k == duration || k == size:
		return "", fmt.Errorf("want %s, in quotes; this is %s", k.wanted, kindOf(v))
	}
	return "", fmt.Errorf("want %s; this is %s", k.wanted, kindOf(v))
}

// kindOf names a value's type.
func kindOf(v *unstable.Node) string {
	switch v.Kind {
	case unstable.String:
		return fmt.Sprintf("the text %q", v.Data)
	case unstable.Bool, unstable.Integer, unstable.Float:
		return string(v.Data)
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	}
	return "a date or a time"
}

// like returns the option with the name nearest to an unknown one.
func (o *options) like(name string) string {
	var names []string
	for _, x := range o.all {
		names = append(names, x.Name)
	}
	return suggest(name, names, "")
}

func (r *configReader) bad(line int, err error) { r.o.faults = append(r.o.faults, fault{line, err}) }

// line returns the line number of an offset.
func (r *configReader) line(at int) int { return 1 + bytes.Count(r.data[:at], []byte("\n")) }

// invalid returns the offset of the first byte that is not UTF-8, or -1.
func invalid(b []byte) int {
	for i, c := range string(b) {
		if c == utf8.RuneError && !bytes.HasPrefix(b[i:], []byte("\ufffd")) {
			return i
		}
	}
	return -1
}
