// Command archive keeps each answer in WARC files, and reads them back.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/processing"
	"github.com/seed-7440039f/frontier/crawler/warc"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
)

const agent = "cookbook/1.0 (+https://me.example/bot)"

// crawl archives a web into a folder. An answer is in the archive before the
// frontier knows that it was read: after a crash it may be there twice, but
// none is missing.
func crawl(ctx context.Context, dir string) (err error) {
	web := site.Start(site.Pages{"http://a.example/": site.Links("/1", "/gone"), "http://a.example/1": "one"}, nil)
	defer web.Close()
	w, err := warc.Open(dir, warc.Options{Software: agent})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)}) // it is our own web
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{
		Workers:   1,
		UserAgent: agent,
		Fetcher:   web.Fetcher(),
		OnPage:    processing.Archive(w, agent),
	})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://a.example/"); err != nil {
		return err
	}
	return c.Run(ctx)
}

// list prints the answers in a WARC file.
func list(out io.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	for r, err := range warc.NewReader(file).Records() {
		if err != nil {
			return err
		}
		if r.Type != warc.Response {
			continue
		}
		answer, err := r.HTTP()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, r.TargetURI, answer.StatusCode)
	}
	return nil
}

func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := crawl(ctx, dir); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	for _, name := range names {
		err = errors.Join(err, list(out, name))
	}
	return err
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
