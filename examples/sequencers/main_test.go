package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// p = 0.8: 80% of the fetches, to the nearest ten, were of pages never crawled
	// p = 0.3: 30% of the fetches, to the nearest ten, were of pages never crawled
	// about 1,000 sites are active: true
	// each site was left alone for 10 s or more: true
	// after CrawlNow the next fetch is of http://operator.example/now
}
