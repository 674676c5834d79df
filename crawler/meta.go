// This file encodes what the crawler itself needs to remember of a URL, in
// Entry.Meta.

package crawler

import (
	"encoding/binary"

	"github.com/seed-7440039f/frontier"
)

// metaVersion is the first byte of a Meta written by this package. A Meta that
// begins otherwise is the user's own and says nothing to the crawler.
const metaVersion = 0xC1

// hopsOf returns how many redirects led to the URL.
func hopsOf(e frontier.Entry) int {
	if len(e.Meta) < 2 || e.Meta[0] != metaVersion {
		return 0
	}
	n, size := binary.Uvarint(e.Meta[1:])
	if size <= 0 || n > 1<<20 {
		return 0
	}
	return int(n)
}

// hopsMeta is the Meta of a URL that so many redirects led to.
func hopsMeta(hops int) []byte {
	if hops == 0 {
		return nil
	}
	return binary.AppendUvarint([]byte{metaVersion}, uint64(hops))
}
