//go:build !frontierholds || !linux

// This file stands in for lockholds_test.go in builds that do not measure.

package frontier

// Holds are how long a frontier's lock was held.
type Holds struct{}

// WatchHolds measures that, with the tag frontierholds.
func (f *Frontier) WatchHolds() *Holds { return nil }

// TakeHolds tells it.
func (f *Frontier) TakeHolds(*Holds) string { return "not watched: needs -tags frontierholds" }

// HoldsWatched says whether holds are measured.
const HoldsWatched = false
