package main

func Example() {
	main()
	// Output:
	// line 5: not a URL
	// 3 URLs, 1 twice
	// 200 http://a.example/1
	// 200 http://a.example/2
	// 404 http://b.example/
}
