//go:build !frontierholds || !linux

// This file stands in for lockholds_test.go in builds that do not measure.

package load

// holds are how long the lock of a frontier was held.
type holds struct{}

// watchHolds measures that, with the tag frontierholds.
func watchHolds() *holds { return nil }

// take says what was measured.
func (*holds) take() string { return "not watched: needs -tags frontierholds" }

// holdsWatched says whether holds are measured.
const holdsWatched = false
