package main

// All pages are fetched, each once and each host's by one node, which is what the
// server saw, too.
func Example() {
	main()
	// Output:
	// node-a fetched 76 pages of [host1.example host5.example host6.example host7.example host9.example], and got links from others
	// node-b fetched 42 pages of [host3.example host4.example host8.example], and got links from others
	// node-c fetched 8 pages of [host2.example], and got links from others
	// 126 pages of 9 hosts; nodes for each host at most: 1; URLs asked for twice: 0
}
