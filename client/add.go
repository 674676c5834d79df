// This file adds URLs.

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/seed-7440039f/frontier"
)

const (
	maxEntries    = 1000 // per request
	maxEntryBytes = 4 << 20
)

// Add adds URLs and returns how many were new or forced, as frontier.Frontier.Add does. It reports bad
// entries as joined *frontier.EntryError values, and adds the others.
func (c *Client) Add(ctx context.Context, entries ...frontier.Entry) (int, error) {
	n := 0
	var errs []error
	_, err := c.verdicts(ctx, entries, c.o.Crawl, func(i int, v *verdict) {
		if v.Status == "new" || v.Status == "forced" {
			n++
		} else if v.isFault() {
			errs = append(errs, v.fault(i, entries[i].URL))
		}
	})
	return n, errors.Join(append(errs, err)...)
}

// verdicts adds entries to a crawl and calls each with each verdict, in order. It returns how many
// verdicts it got: with an error, those before it.
func (c *Client) verdicts(ctx context.Context, entries []frontier.Entry, crawl string, each func(int, *verdict)) (answered int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if c.isClosed() {
		return 0, frontier.ErrClosed
	}
	for answered < len(entries) {
		var body bytes.Buffer
		end := answered
		for end < len(entries) && end-answered < maxEntries && (end == answered || body.Len() < maxEntryBytes) {
			line, err := c.entryLine(&entries[end], crawl)
			if err != nil {
				if end > answered {
					break // the entries before it come first
				}
				each(end, &verdict{Status: "bad", Error: err.Error()})
				answered++
			} else {
				body.Write(line)
			}
			end++
		}
		if body.Len() == 0 {
			continue
		}
		q := &request{method: http.MethodPost, path: "/v1/urls", contentType: linesType, accept: linesType, body: body.Bytes()}
		var got []verdict
		want := end - answered
		err := c.do(ctx, q, func(r io.Reader) error {
			got = got[:0]
			d := json.NewDecoder(r)
			for len(got) < want {
				var v verdict
				if err := decode(d, &v); err != nil {
					return err
				}
				if err := v.problem(); err != nil {
					return err
				}
				got = append(got, v)
			}
			return nil
		})
		for i := range got {
			each(answered, &got[i])
			answered++
		}
		if err != nil {
			return answered, err
		}
	}
	return answered, nil
}

// isFault reports whether the entry was not admitted.
func (v *verdict) isFault() bool { return v.Status == "bad" || v.Status == "refused" }

// fault converts a verdict to the library's error.
func (v *verdict) fault(i int, url string) *frontier.EntryError {
	err := errors.New(v.Error)
	switch {
	case v.Error == "":
		err = fmt.Errorf("client: %s", v.Status)
	case v.Error == frontier.ErrHints.Error():
		err = frontier.ErrHints
	}
	return fault(i, url, err)
}

func fault(i int, url string, err error) *frontier.EntryError {
	if len(url) > 200 {
		url = url[:200] + "..."
	}
	return &frontier.EntryError{Index: i, URL: url, Err: err}
}
