package main

func Example() {
	main()
	// Output:
	// 200 http://a.example/index.html 55 bytes
	// 200 http://a.example/about.html 23 bytes
	// 404 http://a.example/lost.html 0 bytes
}
