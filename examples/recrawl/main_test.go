package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// a page that changes each   1 days was fetched  70 times
	// a page that changes each   3 days was fetched  71 times
	// a page that changes each  10 days was fetched  46 times
	// a page that changes each  30 days was fetched  36 times
	// a page that changes each 100 days was fetched  25 times
	// expected freshness of the copy: 85%
}
