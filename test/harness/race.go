//go:build race

package harness

// RaceEnabled tells simulations to be smaller: the detector makes them ten times
// slower.
const RaceEnabled = true
