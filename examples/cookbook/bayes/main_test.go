package main

func Example() {
	main()
	// Output:
	// 8 http://birds.example/
	// 2 http://birds.example/night
	// 2 http://birds.example/owls
	// 4 http://birds.example/barn
	// 4 http://birds.example/snowy
	// 2 http://birds.example/moth
	// 1 http://birds.example/ducks
	// 1 http://birds.example/teal
	// 1 http://birds.example/pond
}
