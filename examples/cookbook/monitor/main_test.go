package main

func Example() {
	main()
	// Output:
	// visit 1 visited
	// visit 2 unchanged
	// visit 3 changed
	// visit 4 unchanged
	// visit 5 unchanged
	// visit 6 changed
}
