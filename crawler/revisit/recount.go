// This file makes the scheduler's books anew from the URLs.

package revisit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Attach tells r of its frontier, before the crawl begins. After a crash, or without
// a saved state, it reads all URLs (frontier.Export) to make the books anew: some
// seconds for each million. The error is the frontier's, ctx's, or of the folder.
func (r *Revisits) Attach(ctx context.Context, f *frontier.Frontier) error {
	r.frontier = f
	if r.unclean {
		n, err := r.recount(ctx, f)
		if err != nil {
			return fmt.Errorf("revisit: attach: %w", err)
		}
		r.unclean = false
		if n > 0 {
			r.opts.Logger.Info("the books of revisits are made anew", "pages", n)
		}
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	if err := r.saveLocked(false); err != nil {
		return fmt.Errorf("revisit: attach: %w", err)
	}
	return nil
}

var urlLine = []byte(`{"url`)

// recount learns of every page that has a note.
func (r *Revisits) recount(ctx context.Context, f *frontier.Frontier) (pages int, err error) {
	ctx, stop := context.WithCancel(ctx)
	in, out := io.Pipe()
	exported := make(chan error, 1)
	go func() {
		err := f.Export(ctx, out, frontier.ExportOptions{NoMarks: true})
		exported <- errors.Join(err, out.CloseWithError(err))
	}()
	lines := bufio.NewReaderSize(in, 64<<10)
	r.schedule.Recount(func(yield func(recrawl.Page) bool) {
		for {
			line, readErr := lines.ReadBytes('\n')
			if readErr != nil {
				if !errors.Is(readErr, io.EOF) {
					err = readErr
				}
				return
			}
			page, ok, lineErr := r.pageOf(line)
			if lineErr != nil {
				err = lineErr
				return
			}
			if ok {
				pages++
				yield(page)
			}
		}
	})
	stop()
	_ = in.Close() // it never fails
	if exportErr := <-exported; err == nil && exportErr != nil && !errors.Is(exportErr, context.Canceled) {
		err = exportErr
	}
	return pages, err
}

// pageOf returns the page of a line of an export, if it is a URL's that has a note.
func (r *Revisits) pageOf(line []byte) (p recrawl.Page, ok bool, err error) {
	if !bytes.HasPrefix(line, urlLine) {
		return p, false, nil
	}
	var u struct {
		URL   string `json:"url"`
		URL64 []byte `json:"url64"`
		Meta  []byte `json:"meta"`
	}
	if err := json.Unmarshal(line, &u); err != nil {
		return p, false, err
	}
	if u.URL == "" {
		u.URL = string(u.URL64)
	}
	n, ok := parseNote(crawler.Note(frontier.Entry{URL: u.URL, Meta: u.Meta}))
	if !ok {
		return p, false, nil
	}
	host, err := r.opts.HostKey(u.URL)
	if err != nil {
		return p, false, nil // the frontier would not have taken it
	}
	n.page.Host = r.host(host)
	return n.page, true, nil
}
