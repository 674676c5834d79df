// Package browser tests the page of package console in a headless Chromium: what an
// operator sees, clicks and types, light and dark, on a desk and on a phone, with scripts
// and without. It has no code but tests.
//
//	go test -v ./console/browser
//
// The tests are skipped where no Chromium is; FRONTIER_CHROMIUM names one that is not in
// PATH. They drive it over the pipe of the DevTools protocol, which needs no library: of
// the libraries there are, those that know each message's fields fail when a newer
// Chromium sends others.
//
//	go test ./console/browser -run Shots -shots ../../docs/figures
//
// makes the pictures of the documentation. testdata/axe is axe-core, which judges
// accessibility, with its licence.
package browser
