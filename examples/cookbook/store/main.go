// Command store keeps pages in a store of one's own, here a folder: a page is
// stored before the frontier knows that it was read, so that none is missing
// after a crash. It may then be stored once more: its name must not depend on
// when that is.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/spill"
)

// folder is a store of pages.
type folder string

// put stores a page, wholly or not at all.
func (f folder) put(_ context.Context, p *crawler.Page) (err error) {
	if p.Status != 200 {
		return nil
	}
	file, err := os.CreateTemp(string(f), "new-*")
	if err != nil {
		return err // the page counts as failed, and comes again
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = io.Copy(file, p.Body.Reader())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(p.URL))
	return os.Rename(file.Name(), filepath.Join(string(f), hex.EncodeToString(sum[:8])+".html"))
}

func run(ctx context.Context, out io.Writer) (err error) {
	web := site.Start(site.Pages{"http://a.example/": site.Links("/1", "/2"), "http://a.example/1": "one"}, nil)
	defer web.Close()
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pages := folder(filepath.Join(dir, "pages"))
	if err := os.Mkdir(string(pages), 0o700); err != nil {
		return err
	}

	db, err := spill.Open(filepath.Join(dir, "frontier"), spill.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f, err := frontier.Open(ctx, frontier.Options{Spill: db, Delay: frontier.FixedDelay(0)}) // it is our own web
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c, err := crawler.New(f, crawler.Options{Workers: 1, Fetcher: web.Fetcher(), OnPage: pages.put})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://a.example/"); err != nil {
		return err
	}
	if err := c.Run(ctx); err != nil {
		return err
	}
	files, err := os.ReadDir(string(pages))
	for _, file := range files {
		fmt.Fprintln(out, file.Name())
	}
	return err
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
