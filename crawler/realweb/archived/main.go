// Archived reads all WARC files of a folder, as the last crawl left them, and fails if one of them
// cannot be read to its end, or if a digest does not match its block.
//
//	go run ./crawler/realweb/archived FOLDER
//
// It prints the URL of each answer, once for each record.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-7440039f/frontier/crawler/warc"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: archived FOLDER")
	}
	out := bufio.NewWriter(os.Stdout)
	if err := errors.Join(readAll(os.Args[1], out), out.Flush()); err != nil {
		log.Fatal("archived: ", err)
	}
}

// readAll reads all files of a folder, also if some are damaged.
func readAll(dir string, out io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.warc*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no WARC files in %s", dir)
	}
	var errs []error
	for _, name := range files {
		if err := read(name, out); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func read(name string, out io.Writer) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := warc.NewReader(f)
	r.Verify = true
	for rec, err := range r.Records() {
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, rec.Block); err != nil {
			return err
		}
		switch rec.Type {
		case warc.Response, warc.Revisit, warc.Resource:
			fmt.Fprintln(out, rec.TargetURI)
		}
	}
	return nil
}
