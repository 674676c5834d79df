// Command basic is a complete crawl: durable, polite, prioritized. Without arguments it crawls some
// built-in hosts on loopback. With URLs it crawls their hosts; Ctrl-C stops it, and the same
// command continues.
//
//	go run ./examples/basic [-dir FOLDER] [URL...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/examples/basic/web"
	"github.com/seed-7440039f/frontier/spill"
)

func main() {
	dir := flag.String("dir", "frontier-data", "`folder` that keeps the crawl of URLs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	info, err := os.Stdout.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	if flag.NArg() > 0 {
		o := frontier.Options{Delay: frontier.FactorDelay(10, time.Second, 30*time.Second)}
		err = crawl(ctx, os.Stdout, terminal, *dir, o, fetch.Options{}, crawler.Options{}, flag.Args())
	} else {
		err = demo(ctx, os.Stdout, terminal, time.Second)
	}
	if errors.Is(err, context.Canceled) && flag.NArg() > 0 {
		fmt.Println("stopped; the same command goes on from here")
	} else if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// demo crawls hosts of different kinds. Its pauses are parts of unit.
func demo(ctx context.Context, out io.Writer, terminal bool, unit time.Duration) error {
	w := web.Start(
		web.Host{Name: "fast.example", Pages: 30},
		web.Host{Name: "slow.example", Pages: 5, Latency: unit / 10},
		web.Host{Name: "big.example", Pages: 10, Size: 2 << 20},
		web.Host{Name: "strict.example", Pages: 12, Robots: fmt.Sprintf("User-agent: *\nDisallow: /private/\nCrawl-delay: %v\n", unit.Seconds()/2)},
		web.Host{Name: "broken.example", Pages: 10, Status: 503},
	)
	defer w.Close()
	dir, err := os.MkdirTemp("", "frontier-basic")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := frontier.Options{
		Delay: frontier.FactorDelay(10, unit/10, 2*unit),
		// broken.example is given up soon, which does no harm on loopback.
		Backoff:    frontier.Backoff{Base: unit},
		Quarantine: frontier.Quarantine{After: 3, Probe: unit, Probes: 1},
	}
	return crawl(ctx, out, terminal, dir, o, fetch.Options{Dial: w.Dial, Networks: web.Networks}, crawler.Options{RobotsWait: unit / 2}, w.Seeds())
}

// crawl crawls the hosts of the seeds and reports what it did.
func crawl(ctx context.Context, out io.Writer, terminal bool, dir string, o frontier.Options,
	fo fetch.Options, co crawler.Options, seeds []string) (err error) {
	store, err := spill.Open(dir, spill.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	o.Spill = store
	f, err := frontier.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	if co.Fetcher, err = fetch.New(fo); err != nil {
		return err
	}
	for _, s := range seeds {
		host, err := frontier.HostName(s)
		if err != nil {
			return err
		}
		co.Scope.Hosts = append(co.Scope.Hosts, host)
	}
	t := &tally{delay: o.Delay, hosts: map[string]*hostTally{}}
	co.OnDone = t.add
	end, every := "\n", 2*time.Second
	if terminal {
		end, every = "\r", 200*time.Millisecond
	}
	co.ProgressEvery = every
	co.OnProgress = func(p crawler.Progress) {
		fmt.Fprintf(out, "%6.1fs %5d pages %4d gone %4d denied %2d busy %5d waiting by priority %v   %s",
			p.Elapsed.Seconds(), p.Pages, p.Gone, p.Denied, p.Busy, p.Frontier.Waiting, p.Frontier.WaitingBy, end)
	}
	c, err := crawler.New(f, co)
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, seeds...); err != nil {
		return err
	}
	err = c.Run(ctx)
	return errors.Join(err, t.report(out, c.Progress()))
}
