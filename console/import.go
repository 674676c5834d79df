// This file imports exports and lists of URLs.

package console

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/transfer"
)

// Imported is the result of an import.
type Imported struct {
	transfer.Imported
	// Faults describe the first bad lines of a list.
	Faults []string `json:"faults,omitempty"`
}

// faultsAtMost is the most faults in a response.
const faultsAtMost = 10

// takeIn imports an export, whole or not at all, or the good lines of a list. Options.Normalize spells
// the URLs of a list.
func (c *Console) takeIn(ctx context.Context, r io.Reader) (x Imported, err error) {
	in := bufio.NewReader(r)
	var o transfer.ImportOptions
	list := isList(in)
	if list {
		o.SkipBad, o.Normalize = true, c.o.Normalize
	}
	x.Imported, err = c.imports(ctx, in, o)
	if !list {
		return x, err
	}
	var others []error
	for _, err := range joined(err) {
		line, ok := errors.AsType[*transfer.LineError](err)
		switch {
		case !ok:
			others = append(others, err)
		case len(x.Faults) < faultsAtMost:
			x.Faults = append(x.Faults, fmt.Sprintf("line %d %q: %v", line.Line, fetch.Redact(line.Text), line.Err))
		}
	}
	return x, errors.Join(others...)
}

func (c *Console) imports(ctx context.Context, r io.Reader, o transfer.ImportOptions) (transfer.Imported, error) {
	if c.o.Import != nil {
		return c.o.Import(ctx, r, o)
	}
	return transfer.Import(ctx, c.f, r, o)
}

// isList reports whether the first line is not that of an export.
func isList(r *bufio.Reader) bool {
	for n := 64; ; n *= 2 {
		b, err := r.Peek(min(n, r.Size()))
		text := bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), " \t\r\n")
		if len(text) > 0 || err != nil || n >= r.Size() {
			return len(text) > 0 && text[0] != '{'
		}
	}
}

// joined splits a joined error.
func joined(err error) (all []error) {
	many, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, e := range many.Unwrap() {
		all = append(all, joined(e)...)
	}
	return all
}
