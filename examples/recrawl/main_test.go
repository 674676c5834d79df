package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// a page that changes each   1 days was fetched  69 times
	// a page that changes each   3 days was fetched  72 times
	// a page that changes each  10 days was fetched  54 times
	// a page that changes each  30 days was fetched  45 times
	// a page that changes each 100 days was fetched  24 times
	// visits put off: 193
	// expected freshness of the copy: 85%
}
