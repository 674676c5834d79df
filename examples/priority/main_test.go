package main

func Example() {
	main()
	// Output:
	// 3 http://h5.example/news/
	// 3 http://h6.example/news/
	// 3 http://h7.example/news/
	// 1 http://h0.example/archive/
	// 3 http://h8.example/news/
	// 2 http://h3.example/about/
	// 2 http://h4.example/about/
	// 1 http://h1.example/archive/
	// 1 http://h2.example/archive/
}
