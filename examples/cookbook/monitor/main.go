// Command monitor visits pages again and again, and reports which have changed.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/neardup"
	"github.com/seed-7440039f/frontier/crawler/processing"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
)

// every is a Scheduler: the next visit comes so long after the last. Package
// recrawl learns from what changes, and spends a budget where it pays most.
type every time.Duration

// Next implements frontier.Scheduler.
func (d every) Next(v frontier.Visit) (time.Time, frontier.State) {
	if v.Outcome.Result > frontier.Unchanged {
		return time.Time{}, frontier.State{} // never again: it is gone, denied, or failed too often
	}
	return v.Outcome.Ended.Add(time.Duration(d)), frontier.State{}
}

func run(ctx context.Context, out io.Writer) error {
	news := []string{"Rain.", "Rain.", "Floods in the valley!", "Floods in the valley!", "Floods in the valley!", "Sun."}
	var visits atomic.Int64
	web := site.Start(nil, func(url string) (string, bool) {
		if url != "http://news.example/" {
			return "", false
		}
		return news[min(int(visits.Add(1)), len(news))-1], true
	})
	defer web.Close()

	f, err := frontier.Open(ctx, frontier.Options{
		Scheduler: every(20 * time.Millisecond), // an hour, perhaps
		Delay:     frontier.FixedDelay(0),       // it is our own web
	})
	if err != nil {
		return err
	}
	defer f.Close()
	seen, err := neardup.Open("", neardup.Options{}) // with a folder it remembers across restarts
	if err != nil {
		return err
	}
	defer seen.Close()
	c, err := crawler.New(f, crawler.Options{
		Workers:  1,
		MaxPages: int64(len(news)), // else it goes on for ever
		Fetcher:  web.Fetcher(),
		OnPage:   processing.ContentSeen(seen, processing.SeenOptions{}),
		OnDone: func(l frontier.Lease, o frontier.Outcome) {
			if l.Entry.URL != "" && !o.Uncontacted {
				fmt.Fprintln(out, "visit", l.History.Visits+1, o.Result)
			}
		},
	})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://news.example/"); err != nil {
		return err
	}
	return c.Run(ctx)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
