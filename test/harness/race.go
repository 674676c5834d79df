//go:build race

package harness

// RaceEnabled makes simulations smaller: the detector makes them ten times slower.
const RaceEnabled = true
