package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// a page that changes each   1 days was fetched  68 times
	// a page that changes each   3 days was fetched  72 times
	// a page that changes each  10 days was fetched  49 times
	// a page that changes each  30 days was fetched  35 times
	// a page that changes each 100 days was fetched  25 times
	// visits put off: 114
	// expected freshness of the copy: 85%
}
