//go:build !race

package harness

// RaceEnabled makes simulations smaller.
const RaceEnabled = false
