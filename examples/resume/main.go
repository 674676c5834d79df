// Command resume kills its own crawl with SIGKILL, again and again, and shows
// that nothing is lost and that nothing recorded is fetched twice.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/examples/basic/web"
	"github.com/seed-7440039f/frontier/spill"
)

const (
	pages     = 40 // of each host
	kills     = 3
	killAfter = 25 // URLs
)

func main() {
	if dir := os.Getenv("RESUME_DIR"); dir != "" {
		if err := child(context.Background(), dir, os.Getenv("RESUME_WEB")); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := parent(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// child crawls, and prints each URL whose visit is recorded.
func child(ctx context.Context, dir, addr string) (err error) {
	store, err := spill.Open(dir, spill.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f, err := frontier.Open(ctx, frontier.Options{Spill: store, Delay: frontier.FixedDelay(5 * time.Millisecond)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fetcher, err := fetch.New(fetch.Options{Resolve: map[string]string{"*": addr}})
	if err != nil {
		return err
	}
	c, err := crawler.New(f, crawler.Options{
		Fetcher: fetcher,
		OnDone: func(l frontier.Lease, o frontier.Outcome) {
			if o.Result == frontier.Visited || o.Result == frontier.Gone {
				fmt.Println(l.Entry.URL)
			}
		},
	})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://a.example/1", "http://b.example/1"); err != nil {
		return err
	}
	return c.Run(ctx)
}

// parent starts children on the same folder, and kills all but the last.
func parent(out io.Writer) error {
	w := web.Start(web.Host{Name: "a.example", Pages: pages}, web.Host{Name: "b.example", Pages: pages})
	defer w.Close()
	dir, err := os.MkdirTemp("", "frontier-resume")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	done := map[string]bool{} // what children said before they died
	again := 0
	for run := range kills + 1 {
		before, known := w.Asks(), maps.Clone(done)
		if err := start(dir, w.Addr(), run < kills, done); err != nil {
			return err
		}
		after := w.Asks()
		for u := range known {
			again += after[u] - before[u]
		}
		if run < kills {
			fmt.Fprintf(out, "killed a crawl after %d more URLs\n", killAfter)
		}
	}
	found := len(w.Asks()) - 2 // robots.txt of both hosts
	fmt.Fprintf(out, "%d URLs visited; asked for again though done before a kill: %d\n", found, again)
	return nil
}

// start runs a child, to its end or until it has done enough, and adds to done
// what it did.
func start(dir, addr string, kill bool, done map[string]bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "RESUME_DIR="+dir, "RESUME_WEB="+addr)
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	n := 0
	for sc := bufio.NewScanner(lines); sc.Scan(); {
		done[sc.Text()] = true
		if n++; kill && n == killAfter {
			if err := cmd.Process.Kill(); err != nil { // SIGKILL: no chance to tidy up
				return err
			}
		}
	}
	if err := cmd.Wait(); err != nil && !kill {
		return err
	}
	if kill && n < killAfter {
		return fmt.Errorf("the crawl ended by itself after %d URLs", n)
	}
	return nil
}
