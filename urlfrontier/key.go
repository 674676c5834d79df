// This file finds the queue of a URL.

package urlfrontier

import (
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
)

// maxKey is the number of bytes that a key may have.
const maxKey = 255

// keyOf is the key of a URL that came without one: the host, or else what follows :// until a
// character that ends hosts. It is empty if there is none.
func keyOf(url string) string {
	if host, err := frontier.HostName(url); err == nil {
		return host
	}
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(rest, ":/?&"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// Frontier completes the options of a frontier that is to be served, as serve.Frontier does.
// Unless HostKey is set, keys of queues are 1 to 255 bytes of any kind, and are used as they are.
func Frontier(o frontier.Options) frontier.Options {
	if o.HostKey == nil {
		o.HostKey = frontier.HostName // an own one: keys need not be hosts
	}
	return serve.Frontier(o)
}
