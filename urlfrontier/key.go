// This file finds the queue of a URL, and what the frontier calls it.

package urlfrontier

import (
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
)

// maxKey is the number of bytes that a key may have.
const maxKey = 255

// never is the time for which completed URLs are scheduled; a frontier schedules for 292 years at
// most. removed is that of records that are dead: the frontier cannot take a single one out.
var (
	never   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	removed = time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC)
)

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

// storedURL is how the frontier knows a URL of a queue: as it is if the key is its host, and else
// with the key before it.
func storedURL(key, url string) string {
	if host, err := frontier.HostName(url); err == nil && host == key {
		return url
	}
	return "\x00" + key + "\x00" + url
}

// servedURL is the inverse of storedURL.
func servedURL(stored string) string {
	if len(stored) == 0 || stored[0] != 0 {
		return stored
	}
	_, url, _ := strings.Cut(stored[1:], "\x00")
	return url
}

// Frontier completes the options of a frontier that is to be served, as serve.Frontier does.
// Unless HostKey is set, keys of queues need not be the hosts of their URLs.
func Frontier(o frontier.Options) frontier.Options {
	if o.HostKey == nil {
		o.HostKey = HostKey
	}
	return serve.Frontier(o)
}

// HostKey is the host key of a served frontier: the key with which a client put a URL into
// a queue, or else its host.
func HostKey(url string) (string, error) {
	if len(url) > 0 && url[0] == 0 {
		if key, _, ok := strings.Cut(url[1:], "\x00"); ok {
			return key, nil
		}
	}
	return frontier.HostName(url)
}
