package main

func Example() {
	main()
	// Output:
	// 21820 pages, 2180 left
}
