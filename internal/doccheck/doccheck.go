// Package doccheck reads the module's documentation for its tests, which build
// the code in it and compare it with the programs it comes from, and for the
// command that runs its commands.
package doccheck
