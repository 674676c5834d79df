package main

func Example() {
	main()
	// Output:
	// 2 URLs
	// 7 http://a.example/about
	// 6 http://b.example/
}
