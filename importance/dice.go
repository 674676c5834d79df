// This file has the key that hides where a URL's cell is, and the random numbers that round counts.

package importance

import (
	"sync/atomic"
	"unsafe"

	"github.com/dchest/siphash"
)

// key is a key of SipHash. Without it a site cannot choose URLs whose cells collide.
type key [2]uint64

// url returns the hash of a URL of a crawl.
func (k key) url(crawl uint32, url string) uint64 {
	return siphash.Hash(k[0]+uint64(crawl), k[1], unsafe.Slice(unsafe.StringData(url), len(url)))
}

// host returns the hash of a host.
func (k key) host(host string) uint64 {
	return siphash.Hash(k[0], ^k[1], unsafe.Slice(unsafe.StringData(host), len(host)))
}

// dice rolls random numbers (SplitMix64). Safe for concurrent use.
type dice struct{ state atomic.Uint64 }

// roll returns a number from 0 to less than 1.
func (d *dice) roll() float64 {
	x := d.state.Add(0x9e3779b97f4a7c15)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
