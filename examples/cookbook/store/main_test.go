package main

func Example() {
	main()
	// Output:
	// 217fbabc0e7aa171.html
	// 6f09fce05af7d21c.html
}
