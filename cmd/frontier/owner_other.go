//go:build !unix

package main

// checkOwner refuses nothing where files have no owner in this sense.
func checkOwner(string) error { return nil }
