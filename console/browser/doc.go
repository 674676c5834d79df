// Package browser tests the page of package console in a headless Chromium: what an operator sees, clicks
// and types, in light and dark mode, on desktop and phone, with and without JavaScript. It contains only
// tests.
//
//	go test -v ./console/browser
//
// Without Chromium the tests are skipped. FRONTIER_CHROMIUM names one that is not in PATH. The tests use
// the pipe of the DevTools protocol directly: the libraries that decode every message fail when a newer
// Chromium adds fields.
//
//	go test ./console/browser -run Shots -shots ../../docs/figures
//
// makes the pictures of the documentation. testdata/axe is axe-core, an accessibility checker, with its
// licence.
package browser
