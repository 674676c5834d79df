package main

func Example() {
	main()
	// Output:
	// 8 http://birds.example/
	// 5 http://birds.example/night
	// 5 http://birds.example/owls
	// 8 http://birds.example/barn
	// 8 http://birds.example/snowy
	// 5 http://birds.example/moth
	// 4 http://birds.example/ducks
	// 4 http://birds.example/teal
	// 4 http://birds.example/pond
}
