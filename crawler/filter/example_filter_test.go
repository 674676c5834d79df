package filter_test

import (
	"fmt"

	"github.com/seed-7440039f/frontier/crawler/filter"
)

func Example() {
	f := filter.All(
		filter.Allow("domains", filter.Domain("example.org")),
		filter.Deny("pictures", filter.Extension("png", "jpg")),
		filter.MaxDepth(12),
		filter.NewTraps(filter.TrapOptions{}),
	)
	for _, u := range []string{"http://www.example.org/a", "http://example.net/", "http://example.org/x.PNG", "http://example.org/a/b/a/b/a/b"} {
		if r := f.Refuse(filter.Split(u, 3)); r.Refused() {
			fmt.Println(r)
		} else {
			fmt.Println("crawled")
		}
	}
	// Output:
	// crawled
	// domains: not among those allowed
	// pictures: among those denied
	// repeating-segments: "a/b" occurs 3 times or more; at most 2
}
