package main

func Example() {
	main()
	// Output:
	// http://a.example/ 200
	// http://a.example/1 200
	// http://a.example/gone 404
}
