// Command priority shows a prioritizer and a selector of one's own: news first,
// but every fourth hand-out for whatever has waited longest at the bottom.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// byPath gives news priority 3, the archive 1, and all else 2.
func byPath(e frontier.Entry, _ frontier.History) int {
	switch {
	case strings.Contains(e.URL, "/news/"):
		return 3
	case strings.Contains(e.URL, "/archive/"):
		return 1
	}
	return 2
}

// mostlyBest is a Selector: the best three times, then the worst once. It is
// called with the frontier's lock held, so it needs none of its own.
type mostlyBest struct{ n int }

// Select implements frontier.Selector. available is ascending.
func (m *mostlyBest) Select(available []int) int {
	m.n++
	if m.n%4 == 0 {
		return available[0]
	}
	return available[len(available)-1]
}

func main() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{
		Priorities:  3,
		Prioritizer: frontier.PrioritizerFunc(byPath),
		Selector:    &mostlyBest{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	// One URL for each host, so that politeness does not change the order.
	for i, dir := range []string{"archive", "archive", "archive", "about", "about", "news", "news", "news", "news"} {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%s/", i, dir)}); err != nil {
			log.Fatal(err)
		}
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
