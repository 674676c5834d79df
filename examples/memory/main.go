// Command memory is a frontier in memory, in 30 lines, without a network.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier"
)

func main() {
	f, err := frontier.Open(context.Background(), frontier.Options{Delay: frontier.FixedDelay(1e8)}) // 0.1 s
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(context.Background(), frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"})
	for l, err := range f.Leases(context.Background()) { // ends when nothing is left
		fmt.Println("depth", l.Entry.Depth, l.Entry.URL) // your fetch goes here
		link := frontier.Entry{URL: "http://a.example/" + fmt.Sprint(l.Entry.Depth/2), Depth: l.Entry.Depth + 1}
		if err == nil {
			err = f.Done(l, frontier.Outcome{Add: []frontier.Entry{link}}) // known links are no error
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(f.Stats().Known, "URLs,", f.Stats().Duplicates, "links known before,", err)
}
