module github.com/seed-7440039f/frontier/adapters/chromedp

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/seed-7440039f/frontier v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/andybalholm/brotli v1.2.8 // indirect
	github.com/bits-and-blooms/bitset v1.24.6 // indirect
	github.com/dchest/siphash v1.2.3 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/btree v1.1.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/nlnwa/whatwg-url v0.6.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
