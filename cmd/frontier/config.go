// This file reads the configuration file of a crawl: TOML, with a key for each option
// that has the name of its flag. It takes the whole file apart, so that all that is wrong
// with it is told at once, each with its line.

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

// maxConfig is how large a configuration file may be, in bytes.
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
	r := configReader{o: o, data: b, faulty: map[int]bool{}}
	o.file = path
	r.read()
	return nil
}

// configReader takes a file apart.
type configReader struct {
	o      *options
	data   []byte
	p      unstable.Parser
	faulty map[int]bool // lines that are no TOML
}

// keyed looks like a line with a key or a table, behind what is no TOML.
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
		var wrong *unstable.ParserError
		if !errors.As(r.p.Error(), &wrong) {
			return
		}
		from = r.resume(from, from+int(r.p.Range(wrong.Highlight).Offset), wrong)
	}
}

// resume reports what is no TOML, and returns where to go on behind it: at the line
// itself if what is wrong began before it and it is whole, or else at the next one.
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

// expression takes in one. What is in a table is taken as if it were not: that there is
// no such table is told, and what is wrong beside.
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

// value takes in what is said of an option.
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

// scalar is a value as a flag would have it.
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

// kindOf says what a value is.
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

// like proposes the option whose name is most like one that there is not.
func (o *options) like(name string) string {
	var names []string
	for _, x := range o.all {
		names = append(names, x.Name)
	}
	return suggest(name, names, "")
}

func (r *configReader) bad(line int, err error) { r.o.faults = append(r.o.faults, fault{line, err}) }

// line is the number of that in which a byte of the file is.
func (r *configReader) line(at int) int { return 1 + bytes.Count(r.data[:at], []byte("\n")) }

// invalid is where the first byte is that is no UTF-8, or -1.
func invalid(b []byte) int {
	for i := 0; i < len(b); {
		c, n := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
