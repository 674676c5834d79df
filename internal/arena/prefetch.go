//go:build amd64 || arm64

package arena

// prefetch lets the processor fetch the 128 bytes from p on into its cache. It never faults.
//
//go:noescape
func prefetch(p *byte)
