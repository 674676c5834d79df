// Command fetcher crawls what no http server has: a Fetcher of one's own reads
// the pages from a file system. A headless browser is hung in the same way.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing/fstest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/spool"
)

// files is a crawler.Fetcher: the page of http://HOST/PATH is the file HOST/PATH.
type files struct{ fs.FS }

// Fetch answers as a web server would. An error would mean that the host could
// not be contacted: that is tried again.
func (f files) Fetch(_ context.Context, r fetch.Request) (*fetch.Result, error) {
	begun := time.Now()
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	name := strings.Trim(u.Host+u.Path, "/")
	result := &fetch.Result{URL: r.URL, Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Started: begun}
	page, err := fs.ReadFile(f.FS, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		result.Status = http.StatusNotFound
	case err != nil:
		return nil, err
	}
	result.Body, result.Bytes, result.Ended = spool.Of(page), int64(len(page)), time.Now()
	return result, nil
}

func run(ctx context.Context, out io.Writer) error {
	disk := fstest.MapFS{
		"a.example/index.html": {Data: []byte("<a href=about.html>About</a> <a href=lost.html>Lost</a>")},
		"a.example/about.html": {Data: []byte("We are a small company.")},
	}
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)}) // files do not mind
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{
		Workers: 1,
		Fetcher: files{disk},
		OnPage: func(_ context.Context, p *crawler.Page) error {
			fmt.Fprintln(out, p.Status, p.URL, p.Bytes, "bytes")
			return nil
		},
	})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://a.example/index.html"); err != nil {
		return err
	}
	return c.Run(ctx)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
