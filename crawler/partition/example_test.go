package partition_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/partition"
)

func Example() {
	nodes := partition.NewNodes("node-a", "node-b")
	r, err := partition.New(partition.Options{
		Self: "node-a", Splitter: nodes,
		Send: func(_ context.Context, node string, entries []frontier.Entry) error {
			for _, e := range entries {
				fmt.Println(node, "gets", e.URL)
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	links := []frontier.Entry{{URL: "http://a.example/1"}, {URL: "http://b.example/1"}, {URL: "http://b.example/2"}}
	for range 2 { // a second page with the same links
		mine, err := r.Keep(context.Background(), links)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range mine {
			fmt.Println("ours:", e.URL)
		}
	}
	// Output:
	// node-b gets http://b.example/1
	// node-b gets http://b.example/2
	// ours: http://a.example/1
	// ours: http://a.example/1
}
