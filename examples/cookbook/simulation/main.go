// Command simulation lives through an hour of politeness in a moment: how many
// pages of so many hosts can be had in it?
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
)

const (
	hosts   = 20
	perHost = 1_200
	workers = 4
	fetch   = 300 * time.Millisecond
)

func run(ctx context.Context, out io.Writer) error {
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock}) // the default's delay: ten times the fetch
	if err != nil {
		return err
	}
	defer f.Close()
	for h := range hosts {
		var all []frontier.Entry
		for i := range perHost {
			all = append(all, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", h, i)})
		}
		if _, err := f.Add(ctx, all...); err != nil {
			return err
		}
	}
	// One goroutine is all the workers: each fetch under way has its end.
	var busy []underway
	for end := clock.Now().Add(time.Hour); clock.Now().Before(end); {
		next := end
		for len(busy) < workers {
			lease, again, err := f.TryNext()
			if errors.Is(err, frontier.ErrNotDue) {
				if !again.IsZero() && again.Before(next) {
					next = again
				}
				break
			}
			if err != nil {
				return err
			}
			busy = append(busy, underway{lease, clock.Now().Add(fetch)}) // in the order of their ends
		}
		if len(busy) > 0 && busy[0].end.Before(next) {
			next = busy[0].end
		}
		clock.Set(next)
		for len(busy) > 0 && !busy[0].end.After(clock.Now()) {
			if err := f.Done(busy[0].lease, frontier.Outcome{}); err != nil {
				return err
			}
			busy = busy[1:]
		}
	}
	s := f.Stats()
	fmt.Fprintln(out, s.Done[frontier.Visited], "pages,", s.Waiting, "left")
	return nil
}

// underway is a fetch that will end.
type underway struct {
	lease frontier.Lease
	end   time.Time
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
