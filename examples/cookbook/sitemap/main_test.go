package main

func Example() {
	main()
	// Output:
	// 404 http://a.example/sitemap.xml
	// 200 http://a.example/map.xml
	// 200 http://a.example/2
	// 200 http://a.example/1
}
