package main

func Example() {
	main()
	// Output:
	// 3 http://a.example/3
	// 2 http://a.example/2
	// 1 http://a.example/1
}
