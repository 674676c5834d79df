package main

func Example() {
	main()
	// Output:
	// Get "http://a.example/": polite: handed back to read robots.txt
	// 200 http://a.example/
	// 200 http://a.example/news
	// Get "http://a.example/private/": polite: robots.txt forbids "http://a.example/private/": line 2, /private/
	// 404 http://a.example/lost
}
