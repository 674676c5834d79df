package main

func Example() {
	main()
	// Output:
	// 0 200 http://a.example/
	// 1 200 http://a.example/1
	// 1 200 http://a.example/2
	// 1 200 http://b.example/
	// 2 200 http://a.example/1/1
	// 2 200 http://a.example/1/2
	// 2 200 http://a.example/2/1
	// 2 404 http://b.example/deep
}
