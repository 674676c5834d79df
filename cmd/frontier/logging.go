// This file opens the log of a crawl or a server: standard error, as text or JSON.

package main

import (
	"fmt"
	"io"
	"log/slog"
)

// logFlags are the flags about the log.
type logFlags struct {
	format         string
	verbose, quiet bool

	level slog.LevelVar // of the open log
}

func (l *logFlags) define(fs *flagSet) {
	l.defineAs(fs, "log warnings and errors only, and print nothing if the crawl ends with status 0", "log every failed fetch")
}

func (l *logFlags) defineServed(fs *flagSet) {
	l.defineAs(fs, "log warnings and errors only, not each request", "also log hosts that back off, broken connections, and the store's own work")
}

func (l *logFlags) defineAs(fs *flagSet, quiet, verbose string) {
	fs.StringVar(&l.format, "log-format", "text", "`format` of the log: text, or json for programs, one object in each line")
	fs.BoolVar(&l.quiet, "quiet", false, quiet)
	fs.BoolVar(&l.verbose, "v", false, verbose)
}

func (l *logFlags) validate(o *options) {
	o.badIf(l.format != "text" && l.format != "json", "want text or json", "log-format")
	if l.quiet && l.verbose {
		o.fault([]string{"quiet", "v"}, "%s cannot be combined with %s", o.shown("quiet"), o.shown("v"))
	}
}

// moving reports whether a terminal may show a progress line.
func (l *logFlags) moving() bool { return l.format == "text" && !l.quiet }

// open returns the log, and the writer for the final figures.
func (l *logFlags) open(stdout, stderr io.Writer) (*slog.Logger, io.Writer) {
	o := &slog.HandlerOptions{Level: &l.level}
	switch {
	case l.verbose:
		l.level.Set(slog.LevelDebug)
	case l.quiet:
		l.level.Set(slog.LevelWarn)
		stdout = io.Discard
	}
	if l.format == "json" {
		return slog.New(slog.NewJSONHandler(stderr, o)), stdout
	}
	return slog.New(slog.NewTextHandler(stderr, o)), stdout
}

// end writes the last line: how the crawl ended.
func (l *logFlags) end(log *slog.Logger, stderr io.Writer, end ending) {
	switch {
	case l.format == "json" && end.status == exitError:
		log.Error(end.words, "status", end.status)
	case l.format == "json" && end.status != exitOK:
		log.Warn(end.words, "status", end.status)
	case l.format == "json":
		log.Info(end.words, "status", end.status)
	case !l.quiet || end.status != exitOK:
		fmt.Fprintf(stderr, "frontier crawl: %s\n", end.words)
	}
}
