package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// a page that changes each   1 days was fetched  75 times
	// a page that changes each   3 days was fetched  69 times
	// a page that changes each  10 days was fetched  54 times
	// a page that changes each  30 days was fetched  38 times
	// a page that changes each 100 days was fetched  25 times
	// visits put off: 93
	// expected freshness of the copy: 85%
}
