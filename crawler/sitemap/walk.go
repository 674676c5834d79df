// This file follows index files. It fetches nothing itself.

package sitemap

import (
	"context"
	"fmt"
	"io"
	"iter"
)

// File is a file that was fetched.
type File struct {
	Body        io.ReadCloser // Walk closes it
	ContentType string        // the header; may be empty
	// URL is the final URL of the file, after redirects. Empty means the requested URL.
	URL string
}

// WalkOptions say how far Walk goes.
type WalkOptions struct {
	// Options apply to each file. Walk sets URL and ContentType.
	Options
	// MaxDepth is the maximum nesting of index files. The protocol allows one level. Zero means 3.
	MaxDepth int
	// MaxFiles is how many files are fetched. Zero means 50,000.
	MaxFiles int
}

// Walk reads the files at urls, and those listed in index files, each once and one after the other,
// and returns their entries and errors as [Reader.All] does. Entries that list files are followed
// and not returned. Errors of fetch are an [*Error] with the file's URL, and the walk continues;
// when ctx has ended, its error comes last.
func Walk(ctx context.Context, fetch func(ctx context.Context, url string) (File, error), o WalkOptions, urls ...string) iter.Seq2[Entry, error] {
	if o.MaxDepth <= 0 {
		o.MaxDepth = 3
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 50_000
	}
	return func(yield func(Entry, error) bool) {
		w := &walk{ctx: ctx, fetch: fetch, opts: o, yield: yield, known: map[string]bool{}}
		for _, u := range urls {
			if norm, err := o.Options.withDefaults().Normalizer.Normalize(u); err == nil {
				u = norm
			}
			if !w.file(u, 0) {
				return
			}
		}
	}
}

// walk is the state of one loop over Walk.
type walk struct {
	ctx   context.Context
	fetch func(context.Context, string) (File, error)
	opts  WalkOptions
	yield func(Entry, error) bool
	known map[string]bool // files that were fetched, or must not be
}

// file reads one file and those below it. It returns false when the walk must end.
func (w *walk) file(url string, depth int) bool {
	if w.known[url] {
		return true
	}
	if err := w.ctx.Err(); err != nil {
		w.yield(Entry{}, err)
		return false
	}
	if len(w.known) == w.opts.MaxFiles {
		w.yield(Entry{}, &Error{URL: url, Err: ErrTooManyFiles})
		return false
	}
	w.known[url] = true
	below, ok := w.read(url, depth)
	for _, u := range below {
		if ok = ok && w.file(u, depth+1); !ok {
			return false
		}
	}
	return ok
}

// read returns the contents of a file, and then the files that it lists. They are read after it is
// closed, so that only one file is open at a time.
func (w *walk) read(url string, depth int) (below []string, ok bool) {
	f, err := w.fetch(w.ctx, url)
	if err != nil {
		if ended := w.ctx.Err(); ended != nil {
			w.yield(Entry{}, ended)
			return nil, false
		}
		return nil, w.yield(Entry{}, &Error{URL: url, Err: err})
	}
	defer f.Body.Close()
	o := w.opts.Options
	o.URL, o.ContentType = url, f.ContentType
	if f.URL != "" {
		o.URL = f.URL
	}
	tooDeep := 0
	for e, err := range NewReader(f.Body, o).All() {
		switch {
		case err == nil && e.Sitemap && depth == w.opts.MaxDepth:
			tooDeep++
		case err == nil && e.Sitemap:
			if !w.known[e.URL] {
				below = append(below, e.URL)
			}
		default:
			if !w.yield(e, err) {
				return nil, false
			}
		}
	}
	if tooDeep > 0 {
		err := fmt.Errorf("%w: %d files left out", ErrNesting, tooDeep)
		return below, w.yield(Entry{}, &Error{URL: url, Err: err})
	}
	return below, true
}
