// Package badgerfiles reads the formats of badger's files without badger, to find damage
// before badger sees it and to salvage what is left. It keeps no state and opens no files.
//
// The formats are those of the badger version in go.mod; a test fails when that changes.
package badgerfiles
