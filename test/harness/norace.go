//go:build !race

package harness

// RaceEnabled tells simulations to be smaller.
const RaceEnabled = false
