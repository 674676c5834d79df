// Package badgerfiles reads the formats of badger's files without badger, to detect damage before
// badger opens them and to salvage the rest. It has no state and opens no files.
//
// The formats are those of the badger version in go.mod; a test fails when that changes.
package badgerfiles
