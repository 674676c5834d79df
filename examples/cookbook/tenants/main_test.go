package main

func Example() {
	main()
	// Output:
	// crawl 1 has fetched 10
	// crawl 2 has fetched 30
}
