//go:build race

package frontier_test

// raceEnabled tells simulations to be smaller: the detector makes them ten times
// slower.
const raceEnabled = true
