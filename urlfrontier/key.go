// This file derives the key of a URL's queue.

package urlfrontier

import (
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
)

// maxKey is the most bytes in a key.
const maxKey = 255

// keyOf returns the key of a URL that came without one: its host, or else the text after :// up to a
// character that ends a host. It is empty if there is none.
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

// Frontier completes the options of a frontier to serve, as serve.Frontier does. Unless HostKey is set, a
// queue's key is 1 to 255 bytes, used as they are.
func Frontier(o frontier.Options) frontier.Options {
	if o.HostKey == nil {
		o.HostKey = frontier.HostName // not nil: a key need not be a host
	}
	return serve.Frontier(o)
}
