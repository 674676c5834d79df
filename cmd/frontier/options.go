// This file holds a crawl's options: each is a flag and a key of the configuration file. It knows the
// source of each value, and reports every fault with its source. The options' owners decide which values
// are faulty.

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// option is one option. The command line overrides the configuration file, which overrides the default.
type option struct {
	*flag.Flag
	theme  string
	typed  []string // from the command line, in order
	read   []text   // from the file: one, or the elements of a list
	line   int      // of the file; 0: not from there
	from   source
	faulty bool // a fault was reported
	now    any  // the value as the file writes it
	off    bool // it has no effect beside the others
}

// text is a value in a file.
type text struct {
	value string
	line  int
}

// fault is an error in a line of the file; 0: in none.
type fault struct {
	line int
	err  error
}

// source is where an option's value comes from. A later constant overrides an earlier one.
type source int

const (
	fromDefault source = iota
	fromFile
	fromFlag
)

// options are all options of a crawl. The flag set holds their values; it parses no command line.
type options struct {
	*flagSet
	file   string // the configuration file; empty: none
	all    []*option
	faults []fault
}

func newOptions() *options {
	o := &options{flagSet: &flagSet{FlagSet: flag.NewFlagSet("crawl", flag.ContinueOnError)}}
	o.SetOutput(io.Discard)
	return o
}

// define adds the options that a function defines in the flag set, under a theme.
func (o *options) define(theme string, define func(*flagSet)) {
	define(o.flagSet)
	for _, name := range o.names[len(o.all):] {
		o.all = append(o.all, &option{Flag: o.Lookup(name), theme: theme})
	}
}

// flagSet remembers the order in which flags were defined.
type flagSet struct {
	*flag.FlagSet
	names []string
}

func (s *flagSet) named(name string) *flag.FlagSet {
	s.names = append(s.names, name)
	return s.FlagSet
}

func (s *flagSet) BoolVar(p *bool, name string, value bool, usage string) {
	s.named(name).BoolVar(p, name, value, usage)
}
func (s *flagSet) StringVar(p *string, name, value, usage string) {
	s.named(name).StringVar(p, name, value, usage)
}
func (s *flagSet) IntVar(p *int, name string, value int, usage string) {
	s.named(name).IntVar(p, name, value, usage)
}
func (s *flagSet) Int64Var(p *int64, name string, value int64, usage string) {
	s.named(name).Int64Var(p, name, value, usage)
}
func (s *flagSet) Float64Var(p *float64, name string, value float64, usage string) {
	s.named(name).Float64Var(p, name, value, usage)
}
func (s *flagSet) DurationVar(p *time.Duration, name string, value time.Duration, usage string) {
	s.named(name).DurationVar(p, name, value, usage)
}
func (s *flagSet) Var(value flag.Value, name, usage string) { s.named(name).Var(value, name, usage) }

// find returns an option, or nil.
func (o *options) find(name string) *option {
	i := slices.IndexFunc(o.all, func(x *option) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return o.all[i]
}

// settle sets the options from the command line, or else from the file.
func (o *options) settle() {
	for _, x := range o.all {
		values := x.typed
		if len(values) > 0 {
			x.from = fromFlag
		} else if len(x.read) > 0 {
			x.from = fromFile
			values = o.texts(x.Name)
		}
		for _, v := range values {
			if !utf8.ValidString(v) {
				o.badItem(x.Name, v, "want UTF-8")
			}
			if x.Value.Set(v) != nil {
				o.badItem(x.Name, v, "want "+x.kind().wanted)
				_ = x.Value.Set(x.DefValue)
			}
		}
		x.now = x.stated()
	}
}

// given reports whether an option's value is not the default.
func (o *options) given(name string) bool { return o.find(name).from != fromDefault }

// stronger reports whether an option's source overrides another's.
func (o *options) stronger(name, than string) bool { return o.find(name).from > o.find(than).from }

// silence marks options as having no effect.
func (o *options) silence(names ...string) {
	for _, name := range names {
		o.find(name).off = true
	}
}

// bad reports that options have wrong values, alone or together. It skips options with a fault.
func (o *options) bad(want string, names ...string) {
	if slices.ContainsFunc(names, func(name string) bool { return o.find(name).faulty }) {
		return
	}
	if len(names) == 1 && o.find(names[0]).Value.String() == "" {
		o.fault(names, "%s is missing; %s", o.shown(names[0]), want)
		return
	}
	if len(names) == 1 {
		o.fault(names, "%s is %s; %s", o.shown(names[0]), o.find(names[0]).Value, want)
		return
	}
	var values []string
	for _, name := range names {
		values = append(values, o.shown(name)+" "+o.find(name).Value.String())
	}
	o.fault(names, "%s: %s", strings.Join(values, ", "), want)
}

// badIf is bad if the values are wrong.
func (o *options) badIf(wrong bool, want string, names ...string) {
	if wrong {
		o.bad(want, names...)
	}
}

// badItem reports a wrong value, or one of several, of an option.
func (o *options) badItem(name, value, want string) {
	o.item(name, value, fmt.Errorf("%s is %q; %s", o.shown(name), value, want))
}

// item reports an error about a value of an option, which may be one of several, alone or within an
// element of a list.
func (o *options) item(name, value string, err error) {
	x := o.find(name)
	x.faulty = true
	line := 0
	for _, t := range x.read {
		var parts list
		_ = parts.Set(t.value)
		if x.from == fromFile && line == 0 && (t.value == value || slices.Contains(parts, value)) {
			line = t.line
		}
	}
	o.faults = append(o.faults, fault{line, err})
}

// wrong reports a library's error about its options, one fault per line. fields maps the library's fields
// to options; other lines go to name. It skips options with a fault.
func (o *options) wrong(err error, name string, fields ...string) {
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		of, first := name, len(line)
		for i := 0; i < len(fields); i += 2 {
			if at := strings.Index(line, fields[i]); at >= 0 && at < first {
				of, first = fields[i+1], at
			}
		}
		if !o.find(of).faulty {
			o.fault([]string{of}, "%s: %s", o.shown(of), line)
		}
	}
}

// fault reports an error about options, at the first of them in the file.
func (o *options) fault(names []string, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	line := 0
	for _, name := range names {
		x := o.find(name)
		x.faulty = true
		if x.from == fromFile && line == 0 {
			line = x.line
		}
	}
	o.faults = append(o.faults, fault{line, err})
}

// report reports an error that concerns no single option.
func (o *options) report(err error) { o.faults = append(o.faults, fault{0, err}) }

// shown returns an option's name as its source wrote it.
func (o *options) shown(name string) string {
	if o.find(name).from == fromFile {
		return name
	}
	return "-" + name
}

// err returns all faults: those in the file by line, then the others.
func (o *options) err() error {
	slices.SortStableFunc(o.faults, func(a, b fault) int { return cmp.Compare(uint(a.line-1), uint(b.line-1)) })
	var errs []error
	for _, f := range o.faults {
		if f.line > 0 {
			f.err = fmt.Errorf("%s:%d: %w", o.file, f.line, f.err)
		}
		errs = append(errs, f.err)
	}
	return errors.Join(errs...)
}

// flags returns the options as flags of a command. They only record what was typed; settle and the
// options' owners check it.
func (o *options) flags() (all []cli.Flag) {
	for _, x := range o.all {
		if x.Name == seedsKey {
			continue
		}
		f := &cli.GenericFlag{Name: x.Name, Usage: x.Usage, Category: x.theme, Value: &typed{x}, HideDefault: true}
		if x.kind() == boolean {
			all = append(all, &boolFlag{f})
			continue
		}
		if !x.empty() {
			f.HideDefault, f.DefaultText = false, x.DefValue
		}
		all = append(all, f)
	}
	return all
}

// empty reports whether the default needs no mention.
func (x *option) empty() bool {
	return slices.Contains([]string{"", "0", "0s", "false", "[]"}, x.DefValue)
}

// typed adapts an option to package cli.
type typed struct{ *option }

func (t *typed) Set(s string) error { t.typed = append(t.typed, s); return nil }
func (t *typed) Get() any           { return t.typed }
func (t *typed) String() string     { return t.DefValue }
func (t *typed) IsBoolFlag() bool   { return t.kind() == boolean }

// boolFlag is a flag without a value, for the help.
type boolFlag struct{ *cli.GenericFlag }

func (*boolFlag) TakesValue() bool { return false }
func (b *boolFlag) String() string { return cli.FlagStringer(b) }

// kind describes an option's values.
type kind struct {
	name   string // for the documentation
	wanted string // for messages
}

var (
	boolean  = &kind{"true or false", "true or false"}
	integer  = &kind{"integer", "an integer"}
	number   = &kind{"number", "a number"}
	duration = &kind{"time", "a time as in 500ms, 90s, 15m or 24h"}
	size     = &kind{"bytes", "a number of bytes, k, M or G may follow"}
	share    = &kind{"rate", "a number more than 0, and perhaps /s, /m, /h or /d"}
	several  = &kind{"list of texts", "a list of texts"}
	single   = &kind{"text", "a text"}
)

func (x *option) kind() *kind {
	switch x.Value.(type) {
	case *byteSize:
		return size
	case *rate:
		return share
	case *list, *repeated:
		return several
	}
	switch x.Value.(flag.Getter).Get().(type) {
	case bool:
		return boolean
	case time.Duration:
		return duration
	case float64:
		return number
	case string:
		return single
	}
	return integer
}
