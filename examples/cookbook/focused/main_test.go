package main

func Example() {
	main()
	// Output:
	// 1.0 http://birds.example/
	// 1.0 http://birds.example/owls
	// 0.0 http://birds.example/ducks
	// 1.0 http://birds.example/barn
	// 1.0 http://birds.example/snowy
}
