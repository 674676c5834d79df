package main

func Example() {
	main()
	// Output:
	// 3 http://college.edu/
	// 2 http://museum.org/
	// 1 http://shop.com/
	// 3 http://library.edu/
}
