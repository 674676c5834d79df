package main

func Example() {
	main()
	// Output:
	// depth 0 http://a.example/
	// depth 0 http://b.example/
	// depth 1 http://a.example/0
	// 3 URLs, 2 links known before, <nil>
}
