// This file makes the books of a recrawl.Scheduler anew from the URLs of a frontier.

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
	"github.com/seed-7440039f/frontier/recrawl"
)

var urlLine = []byte(`{"url`)

// Recount replaces what the recrawl.Scheduler knows of which pages there are by those of
// a frontier, as after a crash, or when its snapshot was lost (recrawl.Scheduler.Recount).
// It reads all URLs (frontier.Export), some seconds for each million, and is called
// before pages are visited. It returns how many pages there are. The error is the
// frontier's or ctx's; the books are incomplete then.
func (s *Scheduler) Recount(ctx context.Context, f *frontier.Frontier) (pages int, err error) {
	ctx, stop := context.WithCancel(ctx)
	in, out := io.Pipe()
	exported := make(chan error, 1)
	go func() {
		err := f.Export(ctx, out, frontier.ExportOptions{NoMarks: true})
		exported <- errors.Join(err, out.CloseWithError(err))
	}()
	lines := bufio.NewReaderSize(in, 64<<10)
	s.s.Recount(func(yield func(recrawl.Page) bool) {
		for {
			line, readErr := lines.ReadBytes('\n')
			if readErr != nil {
				if !errors.Is(readErr, io.EOF) {
					err = readErr
				}
				return
			}
			page, ok, lineErr := s.pageOf(line)
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

// pageOf returns the page of a line of an export, if it is a URL's that was visited.
func (s *Scheduler) pageOf(line []byte) (p recrawl.Page, ok bool, err error) {
	if !bytes.HasPrefix(line, urlLine) {
		return p, false, nil
	}
	var u struct {
		URL   string `json:"url"`
		URL64 []byte `json:"url64"`
		State []byte `json:"state"`
	}
	if err := json.Unmarshal(line, &u); err != nil {
		return p, false, err
	}
	if len(u.State) == 0 {
		return p, false, nil
	}
	if u.URL == "" {
		u.URL = string(u.URL64)
	}
	host, err := s.o.HostKey(u.URL)
	if err != nil {
		return p, false, nil // the frontier would not have taken it
	}
	p = recrawl.Page{Host: s.HostNumber(host)}
	if err := p.UnmarshalBinary(u.State); err != nil {
		return p, false, fmt.Errorf("revisit: recount: %w", err)
	}
	return p, true, nil
}
