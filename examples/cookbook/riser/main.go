// Command riser has a frontier.Riser of its own: the more links there are to a URL that waits, the earlier
// it comes.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
)

// popular counts links. A priority follows from a URL's Weight, which the frontier keeps.
type popular struct {
	mu    sync.Mutex
	links map[string]int // to URLs that were found again
}

// Priority implements frontier.Prioritizer: 1 for a URL that was found once.
func (p *popular) Priority(e frontier.Entry, _ frontier.History) int { return min(8, 1+int(e.Weight)) }

// Found implements frontier.Riser: there is one more link to a known URL.
func (p *popular) Found(e frontier.Entry) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[e.URL]++
	return min(8, 1+p.links[e.URL])
}

// Rise implements frontier.Riser: the URL waits, and gets a new Weight.
func (p *popular) Rise(waiting frontier.Entry) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return float64(p.links[waiting.URL])
}

func main() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{
		Prioritizer: &popular{links: map[string]int{}},
		Selector:    selector.Strict(),      // the highest priority first
		Delay:       frontier.FixedDelay(0), // nothing is fetched
	})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, found := range []string{"123", "323"} { // then 2 is linked to once more, and 3 twice
		var links []frontier.Entry
		for _, page := range found {
			links = append(links, frontier.Entry{URL: "http://a.example/" + string(page), Depth: 1})
		}
		if _, err := f.Add(ctx, links...); err != nil {
			log.Fatal(err)
		}
	}
	for f.Stats().Risen < 2 { // soon
		time.Sleep(time.Millisecond)
	}
	for l, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Priority, l.Entry.URL)
		if err := f.Done(l, frontier.Outcome{}); err != nil {
			log.Fatal(err)
		}
	}
}
