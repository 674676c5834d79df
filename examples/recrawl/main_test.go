package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// a page that changes each   1 days was fetched  12 times
	// a page that changes each   3 days was fetched  73 times
	// a page that changes each  10 days was fetched  57 times
	// a page that changes each  30 days was fetched  41 times
	// a page that changes each 100 days was fetched  30 times
	// visits put off: 113
	// expected freshness of the copy: 86%
}
